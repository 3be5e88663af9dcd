// N rows per request to compact rows. A core finds the owner of its span's first row by bisection and takes the rows
// that follow in one piece while the same bisection would find the same owner.
#pragma once
#include "ascend/moves.h"

namespace dspark::ascend {

// The first request whose end lies past a row, or `batch`; the same for all rows from there to `until`.
struct Owner {
  int64_t request, until;
};

// Offsets may decrease: the owner is what the specification's bisection finds. Its comparisons come out the same up to
// the least end that was found to lie past the row.
__aicore__ inline Owner owner_of(const Global<int32_t>& offsets, const MoveRowsParams& p, int64_t row) {
  Owner owner{0, p.rows};
  int64_t high = p.batch;
  while (owner.request < high) {
    const int64_t middle = (owner.request + high) / 2, end = offsets.GetValue(uint64_t(middle + 1));
    if (end <= row) {
      owner.request = middle + 1;
    } else {
      high = middle;
      owner.until = min64(owner.until, end);
    }
  }
  return owner;
}

__aicore__ inline void gather_from_strided(const MoveRowsParams& p) {
  const Span span = my_span(p.rows * p.row_bytes);
  if (span.begin == span.end) return;
  Mover mover(p, span);
  const Global<int32_t> offsets = global<int32_t>(p.cu_seqlens);
  for (int64_t row = span.begin / p.row_bytes; row * p.row_bytes < span.end;) {
    const Owner owner = owner_of(offsets, p, row);
    const int64_t count = owner.until - row;
    const bool owned = owner.request < p.batch;
    const int64_t k = owned ? row - offsets.GetValue(uint64_t(owner.request)) : p.width;
    // Before the owner's first row, its rows, and past the last that it can have.
    const int64_t before = clamp64(-k, 0, count), rows = clamp64(p.width - k - before, 0, count - before);
    mover.fill_rows(row, before);
    mover.copy_rows(owner.request * p.width + k + before, row + before, rows);
    mover.fill_rows(row + before + rows, count - before - rows);
    row = owner.until;
  }
}

}  // namespace dspark::ascend
