// Keys of the candidates and the sums that do not depend on the budget.
//
// A key is the survival itself where the draft is a candidate, else 0, so keys sort as floats and survive no index.
// [G, lanes of B], resident in slot 0 while they fit it, else in the workspace in global memory.
#pragma once
#include "ascend/survival.h"

namespace dspark::ascend {

constexpr uint32_t kOffsets = 11;  // slot; its values are for as many words as there are keys, or as a slot holds

struct Totals {
  int64_t count = 0;     // candidates
  int64_t tau0 = 0;      // tau of the mandatory rows alone, Q43
  int64_t min_rows = 0;  // M0
  int64_t cap_rows = 0;  // sum of caps
  __aicore__ inline int64_t most(int64_t max_rows) const {
    const int64_t most = cap_rows - min_rows;
    return max_rows < 0 ? most : max64(0, min64(most, max_rows - min_rows));
  }
};

struct Keys {
  int64_t lanes;      // of one draft: B rounded up to 64
  int64_t size;       // gamma * lanes
  float* workspace;   // [size], null when resident
  __aicore__ inline Keys(const Rules& rules, void* workspace)
      : lanes(int64_t(round_up(rules.batch, kLanes))),
        size(lanes * rules.gamma),
        workspace(size <= int64_t(kSlot) ? nullptr : static_cast<float*>(workspace)) {}
  __aicore__ inline bool resident() const { return workspace == nullptr; }

  // Keys [first, first + n): in slot 0, or loaded into `slot`.
  __aicore__ inline Local<float> read(const Arena& arena, uint32_t slot, int64_t first, uint32_t n) const {
    if (resident()) return arena.slot(0)[uint32_t(first)];
    sync<HardEvent::V_MTE2>();
    load(arena.slot(slot), global<float>(workspace)[uint64_t(first)], n);
    sync<HardEvent::MTE2_V>();
    return arena.slot(slot);
  }
};

// cap_r of `requests` requests from `first` on, 0 in the lanes after them. `scratch` has as many lanes.
__aicore__ inline void read_caps(const Arena& arena, const Local<float>& caps, const Local<int32_t>& scratch,
                                 const Rules& rules, int64_t first, uint32_t requests, uint32_t lanes) {
  if (rules.caps) {
    sync<HardEvent::V_MTE2>();
    load(scratch, global<int32_t>(rules.caps)[uint64_t(first)], requests);
    sync<HardEvent::MTE2_V>();
    at_least(scratch, scratch, int32_t(0), lanes);
    at_most(scratch, scratch, rules.max_verify_len, lanes);
    to_float(caps, scratch, lanes);
  } else {
    fill(caps, float(rules.max_verify_len), lanes);
  }
  if (requests == lanes) return;
  count_up(scratch, 0, lanes);
  to_float(scratch.ReinterpretCast<float>(), scratch, lanes);
  compare(arena.mask(), scratch.ReinterpretCast<float>(), AscendC::CMPMODE::LT, float(requests), lanes);
  select(caps, arena.mask(), caps, 0.0f, lanes);
}

class Candidates {
 public:
  __aicore__ inline Candidates(const Arena& arena, const Rules& rules, const Keys& keys)
      : arena_(arena), rules_(rules), keys_(keys), floor_(rules.min_verify_len > 1 ? rules.min_verify_len : 1) {}

  // Goes over all requests once: survival, keys, totals. Leaves 0, 4, 8, ... in the slot of the offsets.
  __aicore__ inline Totals collect(const Source& source) {
    Totals totals;
    SurvivalTiles tiles(arena_, source, rules_.batch, rules_.gamma);
    const Tiling tiling(rules_.gamma);
    for (int64_t r = 0; r < rules_.batch; r += tiling.requests) {
      const uint32_t requests = uint32_t(min64(tiling.requests, rules_.batch - r));
      for (int64_t k = 0; k < rules_.gamma; k += tiling.drafts) {
        const uint32_t drafts = uint32_t(min64(tiling.drafts, rules_.gamma - k));
        const Tile tile = {r, k, requests, drafts, round_up(requests, kLanes)};
        const Local<float> x = tiles.make(tile);
        if (k == 0) count_rows(tile, totals);
        mask_tile(x, tile, totals);
        keep_tile(x, tile);
      }
    }
    if (keys_.size > 0)
      make_offsets(arena_.slot<int32_t>(kOffsets), keys_.resident() ? uint32_t(keys_.size) : kSlot);
    return totals;
  }

 private:
  __aicore__ inline Local<float> caps() const { return arena_.vector<float>(4); }

  __aicore__ inline void count_rows(const Tile& tile, Totals& totals) {
    const Local<float> rows = arena_.vector<float>(5);
    read_caps(arena_, caps(), rows.ReinterpretCast<int32_t>(), rules_, tile.request, tile.requests, tile.lanes);
    totals.cap_rows += sum(arena_, caps(), tile.lanes);
    at_most(rows, caps(), float(floor_), tile.lanes);
    const int64_t floors = sum(arena_, rows, tile.lanes);
    totals.min_rows += floors;
    if (floor_ > 1) {
      at_most(rows, caps(), 1.0f, tile.lanes);
      totals.tau0 += sum(arena_, rows, tile.lanes) * kQOne;
    } else {
      totals.tau0 += floors * kQOne;
    }
  }

  // Zeroes what is no candidate. Where cap_r > k + 1, a draft is mandatory just if k + 1 < max(min_verify_len, 1).
  __aicore__ inline void mask_tile(const Local<float>& x, const Tile& tile, Totals& totals) {
    for (uint32_t j = 0; j < tile.drafts; ++j) {
      const Local<float> row = x[j * tile.lanes];
      const int64_t rows_before = tile.draft + j + 1;
      compare(arena_.mask(), caps(), AscendC::CMPMODE::GT, float(rows_before), tile.lanes);
      select(row, arena_.mask(), row, 0.0f, tile.lanes);
      if (rows_before >= floor_) continue;
      totals.tau0 += sum_q43(arena_, row, arena_.slot(5), tile.lanes);
      fill(row, 0.0f, tile.lanes);
    }
    compare(arena_.mask(), x, AscendC::CMPMODE::GE, rules_.survival_eps, tile.size());
    select(x, arena_.mask(), x, 0.0f, tile.size());
    const Local<float> ones = arena_.slot(5);
    fill(ones, 1.0f, tile.size());
    select(ones, arena_.mask(), ones, 0.0f, tile.size());
    totals.count += sum(arena_, ones, tile.size());
  }

  __aicore__ inline void keep_tile(const Local<float>& x, const Tile& tile) {
    const uint64_t first = uint64_t(tile.draft * keys_.lanes + tile.request);
    if (keys_.resident()) {
      if (tile.lanes == keys_.lanes) return copy(arena_.slot(0)[uint32_t(first)], x, tile.size());
      for (uint32_t j = 0; j < tile.drafts; ++j)
        copy(arena_.slot(0)[uint32_t(first + j * keys_.lanes)], x[j * tile.lanes], tile.lanes);
      return;
    }
    sync<HardEvent::V_MTE3>();
    store(global<float>(keys_.workspace)[first], x, tile.lanes, tile.drafts, keys_.lanes - tile.lanes);
    sync<HardEvent::MTE3_V>();
    sync<HardEvent::MTE3_MTE2>();
  }

  const Arena& arena_;
  const Rules& rules_;
  const Keys& keys_;
  int64_t floor_;
};

}  // namespace dspark::ascend
