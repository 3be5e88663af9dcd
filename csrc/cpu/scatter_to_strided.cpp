#include <cstring>

#include "common/order.h"
#include "cpu/fill_bytes.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

void scatter_to_strided(const MoveRowsParams& p) {
  if (p.row_bytes == 0) return;
  const FillBytes fill(p.fill, p.element_bytes);
  for (int64_t i = 0; i < p.batch; ++i) {
    const int64_t start = p.cu_seqlens[i];
    const int64_t count = clamp64(p.cu_seqlens[i + 1] - start, 0, p.width);
    // Offsets [first, last) have a source row inside the compact buffer.
    const int64_t first = clamp64(-start, 0, count);
    const int64_t last = clamp64(p.rows - start, first, count);
    uint8_t* to = p.destination + i * p.width * p.row_bytes;
    fill(to, first * p.row_bytes);
    if (last > first)
      std::memcpy(to + first * p.row_bytes, p.source + (start + first) * p.row_bytes,
                  size_t((last - first) * p.row_bytes));
    fill(to + last * p.row_bytes, (p.width - last) * p.row_bytes);
  }
}

}  // namespace dspark::cpu
