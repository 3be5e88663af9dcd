// The candidates in order, one window of up to 3584 at a time, with the exact tau of every budget inside it.
//
// Resident keys are one window. Above that the next window is the best 3584 below the last value seen: each tile is
// sorted and merged into the best so far. Equals of the last value that did not fit are counted and follow as windows
// of one value. So more candidates than fit cost passes over the workspace, never a wrong answer.
//
// tau: q = s * 2^43 is cut into limbs of 6, 19 and 19 bits, whose prefix sums over 3584 values stay below 2^31, so
// that int32 additions (which the vector unit has; it has no int64) give every tau(b) exactly. A scan takes log2(n)
// steps: shifts by 1, 2 and 4 by Gather, for operands must be aligned to 8 floats; the longer ones by plain addition.
// Rejected: float prefix sums (tau would need four exact ReduceSums for each budget looked at), a scan of 64 columns
// (half the repeats, but every index then goes through a permutation).
#pragma once
#include "ascend/candidates.h"
#include "ascend/sort.h"

namespace dspark::ascend {

constexpr uint32_t kPairs = 1, kLimbs = 3, kSpare = 6, kTimes = 8, kValues = 9, kWork = 10;  // slots

class Windows {
 public:
  __aicore__ inline Windows(const Arena& arena, const Keys& keys, const Totals& totals)
      : arena_(arena), keys_(keys), totals_(totals) {
    restart();
  }

  // Candidates before this window, inside it, and tau before it.
  int64_t first = 0;
  uint32_t count = 0;
  int64_t tau_before = 0;

  __aicore__ inline uint32_t lanes() const { return round_up(count, kLanes); }
  __aicore__ inline bool is_last() const { return first + count >= totals_.count; }
  __aicore__ inline Local<float> values() const { return arena_.slot(kValues); }
  __aicore__ inline Local<int32_t> offsets() const { return arena_.slot<int32_t>(kOffsets); }
  __aicore__ inline Local<int32_t> limb(uint32_t i) const { return arena_.slot<int32_t>(limb_[i]); }
  __aicore__ inline uint32_t spare() const { return spare_; }

  __aicore__ inline void restart() {
    first = 0;
    count = 0;
    tau_before = totals_.tau0;
    below_ = 2.0f;
    ties_ = 0;
  }

  // Makes the next window; there must be one.
  __aicore__ inline void next() {
    if (count) tau_before = tau(first + count);
    first += count;
    const int64_t left = totals_.count - first;
    single_ = ties_ > 0;
    if (single_) {
      count = uint32_t(min64(ties_, kSlot));
      ties_ -= count;
      fill(values(), below_, lanes());
    } else {
      count = uint32_t(min64(left, kSlot));
      if (keys_.resident()) sort(pairs(), arena_.pairs(kLimbs, 2), arena_.slot(0), offsets(), uint32_t(keys_.size));
      else collect_best();
        const Local<int32_t> places = arena_.slot<int32_t>(kTimes);
      multiply(places, offsets(), int32_t(2), lanes());
      gather(values(), pairs(), places, 0, lanes());
      if (left > count) count_ties();
    }
    sum_limbs();
  }

  // The window that holds budget b, 0 < b <= count of all candidates.
  __aicore__ inline void seek(int64_t b) {
    if (b <= first) restart();
    while (first + count < b) next();
  }

  // Exact tau of a budget of this window, or of its start.
  __aicore__ inline int64_t tau(int64_t b) const {
    if (b <= first) return tau_before;
    const uint32_t i = uint32_t(b - first - 1);
    return tau_before + (int64_t(limb(2).GetValue(i)) << 38) + (int64_t(limb(1).GetValue(i)) << 19) +
           limb(0).GetValue(i);
  }
  // The survival of the b-th candidate, b in this window.
  __aicore__ inline float value(int64_t b) const { return values_at(uint32_t(b - first - 1)); }
  // Whether the candidate after b is in this window and smaller.
  __aicore__ inline bool drops_after(int64_t b) const {
    const uint32_t i = uint32_t(b - first);
    return i < count && values_at(i) < values_at(i - 1);
  }

 private:
  __aicore__ inline Local<float> pairs() const { return arena_.pairs(kPairs, 2); }
  // From the pairs: the search overwrites the values.
  __aicore__ inline float values_at(uint32_t i) const { return single_ ? below_ : pairs().GetValue(2 * i); }

  __aicore__ inline int64_t count_equal(const Local<float>& x, float value, uint32_t n) {
    const Local<float> ones = arena_.slot(kWork);
    compare(arena_.mask(), x, AscendC::CMPMODE::EQ, value, n);
    fill(ones, 1.0f, n);
    select(ones, arena_.mask(), ones, 0.0f, n);
    return sum(arena_, ones, n);
  }

  // Equals of the last value that are left for later windows.
  __aicore__ inline void count_ties() {
    sync<HardEvent::V_S>();
    below_ = pairs().GetValue(2 * (count - 1));
    ties_ = -count_equal(values(), below_, lanes());
    for (int64_t at = 0; at < keys_.size; at += kSlot) {
      const uint32_t n = uint32_t(min64(kSlot, keys_.size - at));
      ties_ += count_equal(keys_.read(arena_, 0, at, n), below_, n);
    }
  }

  // The best 3584 keys below `below_`, sorted, as pairs.
  __aicore__ inline void collect_best() {
    uint32_t held = 0;
    const Local<float> tile_pairs = arena_.pairs(kLimbs, 2), merged = arena_.pairs(kLimbs + 2, 4);
    for (int64_t at = 0; at < keys_.size; at += kSlot) {
      const uint32_t n = uint32_t(min64(kSlot, keys_.size - at));
      const Local<float> x = keys_.read(arena_, 0, at, n);
      keep(arena_, x, x, AscendC::CMPMODE::LT, below_, 0.0f, n);
      const float best = reduce<Reduction::max>(arena_, x, n);
      if (best == 0.0f || (held == kSlot && best <= pairs().GetValue(2 * (kSlot - 1)))) continue;
      sort(held ? tile_pairs : pairs(), merged, x, offsets(), n);
      if (held) merge_into_best(tile_pairs, merged, held, n);
      held = uint32_t(min64(held + n, kSlot));
      sync<HardEvent::V_S>();
    }
  }

  __aicore__ inline void merge_into_best(const Local<float>& tile, const Local<float>& merged, uint32_t held,
                                         uint32_t n) {
    AscendC::MrgSort4Info info;
    info.elementLengths[0] = uint16_t(held);
    info.elementLengths[1] = uint16_t(n);
    info.ifExhaustedSuspension = false;
    info.validBit = 0b11;
    info.repeatTimes = 1;
    AscendC::MrgSortSrcList<float> sources;
    sources.src1 = pairs();
    sources.src2 = tile;
    sources.src3 = pairs();
    sources.src4 = pairs();
    in_order();
    AscendC::MrgSort(merged, sources, info);
    copy(pairs(), merged, uint32_t(min64(held + n, kSlot)) * 2);
  }

  // Limb prefix sums of the values.
  __aicore__ inline void sum_limbs() {
    const uint32_t n = lanes();
    const Local<float> rest = arena_.slot(kTimes), whole = arena_.slot(kSpare);
    for (uint32_t i = 0; i < 3; ++i) limb_[i] = kLimbs + i;
    spare_ = kSpare;
    multiply(rest, values(), 32.0f, n);
    for (int i = 2; i >= 0; --i) {
      to_int(limb(i), rest, AscendC::RoundMode::CAST_FLOOR, n);
      if (i == 0) break;
      to_float(whole, limb(i), n);
      subtract(rest, rest, whole, n);
      multiply(rest, rest, 524288.0f, n);
    }
    for (uint32_t i = 0; i < 3; ++i) scan(arena_, limb_[i], spare_, offsets(), n);
    sync<HardEvent::V_S>();
  }

  const Arena& arena_;
  const Keys& keys_;
  const Totals& totals_;
  float below_ = 2.0f;   // upper end of the windows to come
  int64_t ties_ = 0;     // equals of `below_` still to come
  bool single_ = false;  // this window holds one value only, `below_`
  uint32_t limb_[3] = {kLimbs, kLimbs + 1, kLimbs + 2}, spare_ = kSpare;
};

}  // namespace dspark::ascend
