// The budget: argmax of tau(b) / T(M0 + b), or the first drop.
//
// The vector unit computes every ratio of a window as a float; what is within 2^-18 of the best is compared exactly, in
// 96 bits, by the scalar unit. The float ratio is within 2^-21: tau from exact limbs (three roundings), T (one), the
// quotient. So the filter never loses the true best, and usually leaves one or two. Where everything ties (s = 1 and T
// proportional to M) all are left: correct and slow.
#pragma once
#include "ascend/windows.h"

namespace dspark::ascend {

constexpr float kNearBest = 1.0f - 1.0f / (1 << 18), kNearDrop = 1.0f + 1.0f / (1 << 18);

struct Ratio {
  int64_t budget, tau, time;
};

// The cost row in global memory.
class Times {
 public:
  __aicore__ inline Times(const Cost& cost) : length_(cost.length), row_(global<int32_t>(cost.step_ns)) {
    const int64_t bound = int64_t(1) << 33;
    const int64_t base = cost.base_ns_scalar ? global<int64_t>(cost.base_ns_scalar).GetValue(0) : cost.base_ns;
    base_ = clamp64(base, -bound, bound);
  }

  // T(rows), by the scalar unit.
  __aicore__ inline int64_t at(int64_t rows) const {
    return clamp64(base_ + row_.GetValue(uint64_t(clamp64(rows, 0, length_ - 1))), 1, kMaxStepNs);
  }

  // T(rows), T(rows + 1), ... of n rows; past the end of the row its last value.
  __aicore__ inline void fetch(const Local<int32_t>& to, int64_t rows, uint32_t n) const {
    const uint32_t here = uint32_t(clamp64(length_ - rows, 0, n));
    const int32_t last = row_.GetValue(uint64_t(length_ - 1));
    fill(to, last, n);
    if (here > 0) {
      sync<HardEvent::V_MTE2>();
      const AscendC::DataCopyExtParams shape{1, here * 4, 0, 0, 0};
      const AscendC::DataCopyPadExtParams<int32_t> rest{true, 0, uint8_t(round_up(here, 8) - here), last};
      AscendC::DataCopyPad(to, row_[uint64_t(rows)], shape, rest);
      sync<HardEvent::MTE2_V>();
    }
    // base + clamp(step, 1 - base, max - base), in two additions that cannot overflow
    const int64_t least = -int64_t(1) - kMaxStepNs, low = 1 - base_, high = kMaxStepNs - base_;
    if (low > kMaxStepNs || high < least) return fill(to, int32_t(low > kMaxStepNs ? 1 : kMaxStepNs), n);
    at_least(to, to, int32_t(max64(low, least)), n);
    at_most(to, to, int32_t(min64(high, kMaxStepNs)), n);
    add(to, to, int32_t(base_ / 2), n);
    add(to, to, int32_t(base_ - base_ / 2), n);
  }

 private:
  int64_t length_, base_;
  Global<int32_t> row_;
};

class BudgetSearch {
 public:
  __aicore__ inline BudgetSearch(const Arena& arena, const Totals& totals, const Rules& rules, const Cost& cost)
      : arena_(arena), totals_(totals), times_(cost), limit_(min64(totals.count, totals.most(rules.max_rows))) {}

  __aicore__ inline int64_t run(Windows& windows, Search search, int64_t min_gain_ppm) {
    Ratio best = {0, totals_.tau0, times_.at(totals_.min_rows)};
    while (windows.first + windows.count < limit_) {
      windows.next();
      if (search == Search::global) {
        best_in(windows, best);
      } else {
        const int64_t stop = drop_in(windows);
        if (stop > 0) return stop - 1;
      }
    }
    if (search == Search::first_drop) return limit_;
    if (min_gain_ppm > 0 && limit_ > 0) {
      const int64_t tau = windows.tau(limit_), time = times_.at(totals_.min_rows + limit_);
      if (!gain_exceeds(best.tau, best.time, tau, time, min_gain_ppm)) return limit_;
    }
    return best.budget;
  }

 private:
  // Positions of the window that are within the limit.
  __aicore__ inline uint32_t allowed(const Windows& w) const { return uint32_t(min64(w.count, limit_ - w.first)); }

  // tau as floats into `to`; `term` is scratch.
  __aicore__ inline void approximate_tau(const Windows& w, const Local<float>& to, const Local<float>& term) const {
    const uint32_t n = w.lanes();
    to_float(to, w.limb(2), n);
    multiply(to, to, 274877906944.0f, n);  // 2^38
    to_float(term, w.limb(1), n);
    multiply(term, term, 524288.0f, n);
    add(to, to, term, n);
    to_float(term, w.limb(0), n);
    add(to, to, term, n);
    add(to, to, float(w.tau_before), n);
  }

  __aicore__ inline void best_in(const Windows& w, Ratio& best) const {
    const uint32_t n = w.lanes(), inside = allowed(w);
    const Local<float> ratio = arena_.slot(w.spare()), time = arena_.slot(kTimes), place = arena_.slot(kWork);
    times_.fetch(time.ReinterpretCast<int32_t>(), totals_.min_rows + w.first + 1, n);
    approximate_tau(w, ratio, place);
    to_float(time, time.ReinterpretCast<int32_t>(), n);
    divide(ratio, ratio, time, n);
    if (inside < n) {
      to_float(place, w.offsets(), n);
      compare(arena_.mask(), place, AscendC::CMPMODE::LT, float(4 * inside), n);
      select(ratio, arena_.mask(), ratio, 0.0f, n);
    }
    compare(arena_.mask(), ratio, AscendC::CMPMODE::GE, reduce<Reduction::max>(arena_, ratio, n) * kNearBest, n);
    sync<HardEvent::V_S>();
    const Local<uint64_t> words = arena_.mask().ReinterpretCast<uint64_t>();
    for (uint32_t word = 0; word < n / 64; ++word)
      for (uint64_t bits = words.GetValue(word), i = word * 64; bits; bits >>= 1, ++i)
        if ((bits & 1) && i < inside) consider(w, w.first + int64_t(i) + 1, best);
  }

  // Budgets come in ascending order, so a tie never replaces.
  __aicore__ inline void consider(const Windows& w, int64_t budget, Ratio& best) const {
    const int64_t tau = w.tau(budget), time = times_.at(totals_.min_rows + budget);
    if (ratio_greater(tau, time, best.tau, best.time)) best = {budget, tau, time};
  }

  // The first b of the window with q_b T(b-1) <= tau(b-1) (T(b) - T(b-1)), or 0. With T(b) in place of T(b-1) and
  // tau(b) in place of tau(b-1) it is the same condition, and needs no second array of tau.
  __aicore__ inline int64_t drop_in(const Windows& w) const {
    const uint32_t n = w.lanes(), inside = allowed(w);
    const Local<float> time = arena_.slot(kTimes), rise = arena_.slot(w.spare()), gain = w.values(),
                       bar = arena_.slot(kWork);
    times_.fetch(time.ReinterpretCast<int32_t>(), totals_.min_rows + w.first + 1, n);
    times_.fetch(rise.ReinterpretCast<int32_t>(), totals_.min_rows + w.first, n);
    subtract(rise.ReinterpretCast<int32_t>(), time.ReinterpretCast<int32_t>(), rise.ReinterpretCast<int32_t>(), n);
    to_float(rise, rise.ReinterpretCast<int32_t>(), n);
    to_float(time, time.ReinterpretCast<int32_t>(), n);
    multiply(gain, gain, 8796093022208.0f, n);  // 2^43
    multiply(gain, gain, time, n);
    approximate_tau(w, bar, time);
    multiply(bar, bar, rise, n);
    multiply(bar, bar, kNearDrop, n);
    subtract(bar, bar, gain, n);
    compare(arena_.mask(), bar, AscendC::CMPMODE::GE, 0.0f, n);
    to_float(time, w.offsets(), n);
    select(time, arena_.mask(), time, float(4 * kSlot), n);
    while (true) {
      const uint32_t i = uint32_t(reduce<Reduction::min>(arena_, time, n)) / 4;
      if (i >= inside) return 0;
      const int64_t budget = w.first + i + 1;
      if (drops(w, budget)) return budget;
      keep(arena_, time, time, AscendC::CMPMODE::GT, float(4 * i), float(4 * kSlot), n);
    }
  }

  __aicore__ inline bool drops(const Windows& w, int64_t budget) const {
    const int64_t tau = w.tau(budget - 1), q = w.tau(budget) - tau;
    return first_drop_stops(q, tau, times_.at(totals_.min_rows + budget - 1), times_.at(totals_.min_rows + budget));
  }

  const Arena& arena_;
  const Totals& totals_;
  Times times_;
  int64_t limit_;
};

}  // namespace dspark::ascend
