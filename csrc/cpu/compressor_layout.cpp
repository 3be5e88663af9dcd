#include <algorithm>

#include "common/order.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

namespace {

// Slot of a compressed entry; the pad slot when its page is missing or the slot does not fit the output's type.
int64_t slot_of(const CompressorTableParams& t, int64_t request, int64_t page, int64_t within) {
  if (page >= t.pages) return t.pad_slot;
  const int64_t id = t.page_table[request * t.pages + page];
  const int64_t largest = t.slot.is_int64 ? INT64_MAX : INT32_MAX;
  return id < 0 || id > (largest - within) / t.page_size ? t.pad_slot : id * t.page_size + within;
}

void write_table(const CompressorLayoutParams& p, const CompressorTableParams& t) {
  std::fill_n(t.rope_position, t.capacity, int64_t(0));
  std::fill_n(t.query_row, t.capacity, -1);
  for (int64_t c = 0; c < t.capacity; ++c) t.slot.set(c, t.pad_slot);
  int64_t total = 0;
  t.offsets[0] = 0;
  for (int64_t i = 0; i < p.batch; ++i) {
    // Lengths reach 2^32 - 2, so 32-bit division serves.
    const uint32_t start = uint32_t(p.start_pos_out[i]), end = start + uint32_t(p.seqused_out[i]);
    const uint32_t ratio = uint32_t(t.ratio);
    const int64_t first = start / ratio, entries = int64_t(end / ratio) - first, begin = total;
    total = saturate32(begin + entries);
    t.offsets[i + 1] = int32_t(total);
    const int64_t room = clamp64(t.capacity - begin, 0, entries);
    for (int64_t j = 0; j < room; ++j) {
      const int64_t entry = first + j, row = p.cu_seqlens[i] + (entry + 1) * t.ratio - 1 - start;
      if (row < 0 || row >= p.rows) continue;
      t.rope_position[begin + j] = entry * t.ratio;
      t.query_row[begin + j] = int32_t(row);
      t.slot.set(begin + j, slot_of(t, i, entry / t.page_size, entry % t.page_size));
    }
  }
}

}  // namespace

void compressor_layout(const CompressorLayoutParams& p) {
  for (int64_t i = 0; i < p.batch; ++i) {
    const int32_t start = saturate32(p.start_pos[i]), used = saturate32(p.seqused[i]);
    const int32_t kv = saturate32(int64_t(start) + used);
    p.start_pos_out[i] = start;
    p.seqused_out[i] = used;
    p.seqused_kv[i] = p.clamp_seqused_kv && kv < 1 ? 1 : kv;
  }
  for (int k = 0; k < p.tables; ++k) write_table(p, p.table[k]);
}

}  // namespace dspark::cpu
