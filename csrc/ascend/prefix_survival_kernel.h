// Survival alone: blocks share the requests, 64 at a time; they meet nowhere.
// Bytes: each confidence is read once and each survival written once. One tile: 2G + 16 vector instructions, 72 more
// for logits and one for each of scale, bias and offset per draft.
#pragma once
#include "ascend/survival.h"

namespace dspark::ascend {

__aicore__ inline void prefix_survival(const SurvivalParams& p) {
  Arena arena;
  const Source source = {nullptr, p.confidence, p.freshness, p.survival, p.calibrated};
  SurvivalTiles tiles(arena, source, p.batch, p.gamma);
  const Tiling tiling(p.gamma);
  const int64_t blocks = AscendC::GetBlockNum();
  const int64_t step = min64(tiling.requests, round_up((p.batch + blocks - 1) / blocks, kLanes));
  for (int64_t r = AscendC::GetBlockIdx() * step; r < p.batch; r += blocks * step) {
    const uint32_t requests = uint32_t(min64(step, p.batch - r));
    for (int64_t k = 0; k < p.gamma; k += tiling.drafts)
      tiles.make({r, k, requests, uint32_t(min64(tiling.drafts, p.gamma - k)), round_up(requests, kLanes)});
  }
}

}  // namespace dspark::ascend
