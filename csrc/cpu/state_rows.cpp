// The two forms in which a compressor finds its state: explicit rows (state_rows) and a block table (state_blocks).
#include <algorithm>
#include <cstring>

#include "common/order.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

namespace {

// group * ring + phase, or the dummy row when it is no int32.
int32_t ring_row(const StateRowsParams& p, int64_t group, int64_t phase) {
  if (group < 0 || group > INT32_MAX) return p.dummy_row;
  const int64_t row = group * p.ring + phase;
  return row <= INT32_MAX ? int32_t(row) : p.dummy_row;
}

// Positions position, position + 1, ... of one ring: a single division, since they are 100 and more per request.
void request_rows(const StateRowsParams& p, int64_t slot, int64_t position, int64_t count, int32_t* rows) {
  int64_t phase = position % p.ring;
  for (int64_t c = 0; c < count; ++c) {
    rows[c] = ring_row(p, slot, phase);
    if (++phase == p.ring) phase = 0;
  }
}

int32_t swa_row(const StateRowsParams& p, int64_t slot, int64_t position) {
  if (slot < 0 || slot >= p.slots || position >= p.max_context) return p.dummy_row;
  const int64_t token = p.req_to_token[slot * p.max_context + position];
  if (token < 0 || token >= p.tokens) return p.dummy_row;
  const int64_t w = p.full_to_swa[token];
  return w < 0 ? p.dummy_row : ring_row(p, w / p.swa_page, w % p.ring);
}

}  // namespace

void state_rows(const StateRowsParams& p) {
  const int64_t columns = p.window + p.width;
  for (int64_t i = 0; i < p.batch; ++i) {
    int32_t* row = p.state_rows + i * columns;
    const int64_t owned = int64_t(p.cu_seqlens[i + 1]) - p.cu_seqlens[i];
    const int64_t end = p.seqused[i] > 0 ? clamp64(p.window + owned, 0, columns) : 0;
    const int64_t origin = saturate32(p.start_pos[i]) - p.window;  // position of column 0
    const int64_t begin = clamp64(-origin, 0, end);
    const int64_t slot = p.request_slot[i];
    std::fill(row, row + begin, p.dummy_row);
    if (p.swa_page > 0)
      for (int64_t c = begin; c < end; ++c) row[c] = swa_row(p, slot, origin + c);
    else request_rows(p, slot, origin + begin, end - begin, row + begin);
    std::fill(row + end, row + columns, p.dummy_row);
  }
}

void state_blocks(const StateBlocksParams& p) {
  for (int64_t i = 0; i < p.batch; ++i) {
    const int64_t start = saturate32(p.start_pos[i]), used = saturate32(p.seqused[i]);
    const int64_t kept_from = max64(0, (start / p.ratio - (p.coff - 1)) * p.ratio);
    const int64_t begin = used > 0 ? min64(kept_from / p.block_size, p.blocks) : p.blocks;
    const int64_t end = clamp64((start + used + p.block_size - 1) / p.block_size, begin, p.blocks);
    const uint8_t* from = p.block_table + i * p.blocks * p.id_bytes;
    uint8_t* to = p.state_blocks + i * p.blocks * p.id_bytes;
    if (p.blocks == 0) continue;
    std::memset(to, 0, size_t(begin * p.id_bytes));
    std::memcpy(to + begin * p.id_bytes, from + begin * p.id_bytes, size_t((end - begin) * p.id_bytes));
    std::memset(to + end * p.id_bytes, 0, size_t((p.blocks - end) * p.id_bytes));
  }
}

}  // namespace dspark::cpu
