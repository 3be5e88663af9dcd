#include <algorithm>
#include <cstring>

#include "common/order.h"
#include "cpu/fill_bytes.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

namespace {

void copy_rows(const MoveRowsParams& p, int64_t from, int64_t to, int64_t count) {
  std::memcpy(p.destination + to * p.row_bytes, p.source + from * p.row_bytes, size_t(count * p.row_bytes));
}

void gather_by_request(const MoveRowsParams& p, const FillBytes& fill) {
  int64_t row = 0;  // rows before it are written
  for (int64_t i = 0; i < p.batch && row < p.rows; ++i) {
    const int64_t begin = clamp64(p.cu_seqlens[i], row, p.rows), end = clamp64(p.cu_seqlens[i + 1], begin, p.rows);
    fill(p.destination + row * p.row_bytes, (begin - row) * p.row_bytes);
    const int64_t skipped = begin - p.cu_seqlens[i];  // rows of a request that starts before row 0
    const int64_t copied = clamp64(p.width - skipped, 0, end - begin);
    if (copied > 0) copy_rows(p, i * p.width + skipped, begin, copied);
    row = begin + copied;
  }
  fill(p.destination + row * p.row_bytes, (p.rows - row) * p.row_bytes);
}

// Offsets that decrease own no clear rows: the owner of a row is then what the specification's bisection finds.
void gather_by_row(const MoveRowsParams& p, const FillBytes& fill) {
  for (int64_t row = 0; row < p.rows; ++row) {
    int64_t low = 0, high = p.batch;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (p.cu_seqlens[middle + 1] <= row) low = middle + 1;
      else high = middle;
    }
    const int64_t offset = low < p.batch ? row - p.cu_seqlens[low] : -1;
    if (offset >= 0 && offset < p.width) copy_rows(p, low * p.width + offset, row, 1);
    else fill(p.destination + row * p.row_bytes, p.row_bytes);
  }
}

}  // namespace

void gather_from_strided(const MoveRowsParams& p) {
  if (p.row_bytes == 0) return;
  const FillBytes fill(p.fill, p.element_bytes);
  if (std::is_sorted(p.cu_seqlens, p.cu_seqlens + p.batch + 1)) gather_by_request(p, fill);
  else gather_by_row(p, fill);
}

}  // namespace dspark::cpu
