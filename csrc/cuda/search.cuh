// The budget from sorted keys: argmax of tau(b) / T(M0 + b), or the first drop. Keys lie in shared or global memory.
//
// Four consecutive budgets per thread and round: their sum of q, one block scan for tau, then one exact comparison per
// budget (16 instructions; a floating-point filter would cost more than it saves). first_drop is a local condition, so
// it is a minimum over the block and not a running one; its rounds end at the first drop.
#pragma once
#include "cuda/candidates.cuh"

namespace dspark::cuda {

struct alignas(16) Ratio {
  int64_t tau;
  int32_t time, budget;
};

// The greater ratio, the smaller budget on a tie: a total order, so that any order of reduction gives the same.
struct Better {
  __device__ Ratio operator()(const Ratio& a, const Ratio& b) const {
    const U96 x = mul96(a.tau, b.time), y = mul96(b.tau, a.time);
    const bool equal = x.hi == y.hi && x.lo == y.lo;
    return equal ? (a.budget < b.budget ? a : b) : greater96(x, y) ? a : b;
  }
};

constexpr int kBudgetsPerThread = 4;

// q of four candidates from `first` on, 0 past the limit.
struct Gains {
  int64_t q[kBudgetsPerThread], sum = 0;
  __device__ Gains(const uint32_t* sorted, int64_t first, int64_t limit) {
#pragma unroll
    for (int j = 0; j < kBudgetsPerThread; ++j) {
      q[j] = first + j < limit ? q43(key_survival(sorted[first + j])) : 0;
      sum += q[j];
    }
  }
};

template <int kThreads>
__device__ int64_t search_first_drop(Team<kThreads>& team, const uint32_t* sorted, const Totals& totals, int64_t limit,
                                     const Cost& cost) {
  const int64_t base = cost.base();
  int64_t tau = totals.tau0;
  for (int64_t round = 0; round < limit; round += kThreads * kBudgetsPerThread) {
    const int64_t first = round + int64_t(threadIdx.x) * kBudgetsPerThread;
    const Gains gains(sorted, first, limit);
    int64_t total, before = tau + team.exclusive_sum(gains.sum, total);
    int64_t drop = INT64_MAX, time = step_time(cost, base, totals.min_rows + first);
#pragma unroll
    for (int j = 0; j < kBudgetsPerThread; ++j) {
      const int64_t budget = first + j + 1, next = step_time(cost, base, totals.min_rows + budget);
      if (budget <= limit && first_drop_stops(gains.q[j], before, time, next)) drop = min64(drop, budget);
      before += gains.q[j];
      time = next;
    }
    drop = team.min(drop);
    if (drop != INT64_MAX) return drop - 1;
    tau += total;
  }
  return limit;
}

template <int kThreads>
__device__ int64_t search_global(Team<kThreads>& team, const uint32_t* sorted, const Totals& totals, int64_t limit,
                                 const Cost& cost, int64_t min_gain_ppm) {
  const int64_t base = cost.base();
  const Ratio none = {totals.tau0, int32_t(step_time(cost, base, totals.min_rows)), 0};
  Ratio best = none;
  int64_t tau = totals.tau0;
  for (int64_t round = 0; round < limit; round += kThreads * kBudgetsPerThread) {
    const int64_t first = round + int64_t(threadIdx.x) * kBudgetsPerThread;
    const Gains gains(sorted, first, limit);
    int64_t total, after = tau + team.exclusive_sum(gains.sum, total);
#pragma unroll
    for (int j = 0; j < kBudgetsPerThread; ++j) {
      const int64_t budget = first + j + 1, time = step_time(cost, base, totals.min_rows + budget);
      after += gains.q[j];
      if (budget <= limit && ratio_greater(after, time, best.tau, best.time))
        best = {after, int32_t(time), int32_t(budget)};
    }
    tau += total;
  }
  best = team.reduce(best, none, Better());
  if (min_gain_ppm > 0 && limit > 0) {
    const int64_t full_time = step_time(cost, base, totals.min_rows + limit);
    if (!gain_exceeds(best.tau, best.time, tau, full_time, min_gain_ppm)) return limit;
  }
  return best.budget;
}

template <int kThreads>
__device__ int64_t search_budget(Team<kThreads>& team, const uint32_t* sorted, const Totals& totals, const Rules& rules,
                                 const Cost& cost, Search search, int64_t min_gain_ppm) {
  const int64_t limit = min64(totals.count, totals.most(rules.max_rows));
  return search == Search::first_drop ? search_first_drop(team, sorted, totals, limit, cost)
                                      : search_global(team, sorted, totals, limit, cost, min_gain_ppm);
}

// tau(b), by one warp; every lane gets it.
__device__ __forceinline__ int64_t tau_by_warp(const uint32_t* sorted, const Totals& totals, int64_t budget) {
  int64_t sum = 0;
  for (int64_t i = threadIdx.x % 32; i < budget; i += 32) sum += q43(key_survival(sorted[i]));
  return totals.tau0 + sum_warp(sum);
}

}  // namespace dspark::cuda
