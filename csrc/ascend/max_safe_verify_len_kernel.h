// The longest safe verify length. Exact integer divisions: the scalar unit's work, shared by all cores.
#pragma once
#include "ascend/requests.h"

namespace dspark::ascend {

__aicore__ inline int64_t longest_safe(const MaxSafeVerifyLenParams& p, int64_t start) {
  const int64_t s = saturate32(start), threshold_of_one = ((s + 1) / p.ratio - (p.coff - 1)) * p.ratio;
  const int64_t kept_from = max64(s, threshold_of_one);
  const int64_t longest = (kept_from / p.ratio + p.coff) * p.ratio - 1 - s;
  return clamp64(p.ring > 0 ? min64(longest, p.ring - p.coff * p.ratio + 1) : longest, 1, p.max_verify_len);
}

__aicore__ inline void max_safe_verify_len(const MaxSafeVerifyLenParams& p) {
  Fields<kTileLanes * 12> fields;
  const IndexField start(fields.take<int64_t>(kTileLanes), p.start_pos.is_int64);
  const Local<int32_t> safe = fields.take<int32_t>(kTileLanes);
  for (RequestTile tile(p.batch); tile.count; tile.next()) {
    start.load_from(p.start_pos.data, tile);
    sync<HardEvent::MTE2_S>();
    for (uint32_t i = 0; i < tile.count; ++i) safe.SetValue(i, int32_t(longest_safe(p, start.get(i))));
    sync<HardEvent::S_MTE3>();
    store(global<int32_t>(p.safe_lens)[uint64_t(tile.first)], safe, tile.count);
  }
}

}  // namespace dspark::ascend
