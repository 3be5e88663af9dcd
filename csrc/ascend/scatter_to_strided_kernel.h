// Compact rows to N rows per request. Two offsets are read per request of a core's span, through the scalar cache.
#pragma once
#include "ascend/moves.h"

namespace dspark::ascend {

__aicore__ inline void scatter_to_strided(const MoveRowsParams& p) {
  const int64_t request_bytes = p.width * p.row_bytes;
  const Span span = my_span(p.batch * request_bytes);
  if (span.begin == span.end) return;
  Mover mover(p, span);
  const Global<int32_t> offsets = global<int32_t>(p.cu_seqlens);
  for (int64_t i = span.begin / request_bytes; i * request_bytes < span.end; ++i) {
    const int64_t start = offsets.GetValue(uint64_t(i)), row = i * p.width;
    const int64_t count = clamp64(offsets.GetValue(uint64_t(i + 1)) - start, 0, p.width);
    // Rows [first, last) of the request have a source inside the compact buffer.
    const int64_t first = clamp64(-start, 0, count), last = clamp64(p.rows - start, first, count);
    mover.fill_rows(row, first);
    mover.copy_rows(start + first, row + first, last - first);
    mover.fill_rows(row + last, p.width - last);
  }
}

}  // namespace dspark::ascend
