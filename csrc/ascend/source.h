// What a tile of survival rows is made from, and how [B, G] is cut into tiles.
#pragma once
#include "ascend/device.h"

namespace dspark::ascend {

// Where survival comes from, and where it is kept.
struct Source {
  const float* given;  // [B, G], read as its running minimum; or null, then:
  Confidence confidence;
  Freshness freshness;
  float *survival, *calibrated;  // [B, G] or null
};

struct Tile {
  int64_t request, draft;   // the first of each
  uint32_t requests, drafts, lanes;
  __aicore__ inline uint32_t size() const { return drafts * lanes; }
};

// Splits [B, G] into tiles whose rows of whole 32-byte blocks fit a slot.
struct Tiling {
  uint32_t requests, drafts;
  __aicore__ inline Tiling(int64_t gamma) {
    drafts = uint32_t(min64(gamma, 32));
    const uint32_t fit = kSlot / round_up(drafts, 8) / kLanes * kLanes;
    requests = fit < kTileRequests ? fit : kTileRequests;
  }
};

}  // namespace dspark::ascend
