// Keys of the candidates, the sums that do not depend on the budget, and what a budget becomes once it is bounded.
#pragma once
#include "common/params.h"
#include "cuda/survival.cuh"
#include "cuda/team.cuh"

namespace dspark::cuda {

struct Totals {
  int64_t count = 0;     // candidates
  int64_t tau0 = 0;      // tau of the mandatory rows alone, Q43
  int64_t min_rows = 0;  // M0
  int64_t cap_rows = 0;  // sum of caps

  __device__ int64_t most(int64_t max_rows) const {
    const int64_t most = cap_rows - min_rows;
    return max_rows < 0 ? most : max64(0, min64(most, max_rows - min_rows));
  }
};

// The rows of request r that are candidates: k + 1 in [floor, cap).
struct Span {
  int32_t floor, cap;
  __device__ Span(const Rules& rules, int64_t r)
      : cap(row_cap(rules.caps, r, rules.max_verify_len)) {
    floor = row_floor(rules.min_verify_len, cap);
  }
  __device__ bool has(int64_t k) const { return k + 1 >= floor && k + 1 < cap; }
  __device__ bool is_mandatory(int64_t k) const { return k + 1 < floor; }
};

// Writes the keys of request r, 0 where there is no candidate, and adds to `totals`. `seen(k, s, row)` may keep s.
template <class Row, class Seen>
__device__ void collect_row(Row row, const Rules& rules, int64_t r, uint32_t* keys, Totals& totals, Seen seen) {
  const Span span(rules, r);
  totals.tau0 += span.cap > 0 ? kQOne : 0;
  totals.min_rows += span.floor;
  totals.cap_rows += span.cap;
  for (int64_t k = 0; k < rules.gamma; ++k) {
    const float s = row.next(k);
    seen(k, s, row);
    if (span.is_mandatory(k)) totals.tau0 += q43(s);
    const bool is_candidate = span.has(k) && s >= rules.survival_eps;
    keys[r * rules.gamma + k] = is_candidate ? survival_key(s) : 0;
    totals.count += is_candidate;
  }
}

template <class TeamType>
__device__ Totals sum_totals(TeamType& team, const Totals& mine) {
  // Three sums of at most 2^18 in one word.
  const int64_t packed = team.sum(mine.count << 42 | mine.min_rows << 21 | mine.cap_rows);
  const int64_t mask = (int64_t(1) << 21) - 1;
  Totals all;
  all.count = packed >> 42;
  all.min_rows = packed >> 21 & mask;
  all.cap_rows = packed & mask;
  all.tau0 = team.sum(mine.tau0);
  return all;
}

// A budget after its bounds and the tier fill.
struct Execution {
  int64_t budget, admitted, tier;
};

template <class TeamType>
__device__ Execution execute(TeamType& team, const Totals& totals, int64_t budget, int64_t max_rows,
                             const Tiers& tiers) {
  const int64_t most = totals.most(max_rows);
  const int64_t bounded = clamp64(budget, 0, most);
  int64_t tier = INT64_MAX;
  if (tiers.count > 0) {
    for (int64_t i = threadIdx.x; i < tiers.count; i += blockDim.x)
      if (tiers.rows[i] >= totals.min_rows + bounded) tier = min64(tier, tiers.rows[i]);
    tier = team.min(tier);
  }
  if (tier == INT64_MAX) tier = -1;
  const int64_t filled = tiers.fill && tier >= 0 ? max64(bounded, min64(tier - totals.min_rows, most)) : bounded;
  return {bounded, min64(filled, totals.count), tier};
}

__device__ __forceinline__ int64_t step_time(const Cost& cost, int64_t base, int64_t rows) {
  return step_time_ns(cost.step_ns, cost.length, base, rows);
}

// One thread writes the five values.
__device__ __forceinline__ void write_stats(int64_t* stats, const Totals& totals, const Execution& e, int64_t tau,
                                            const Cost& cost) {
  const int64_t rows = totals.min_rows + e.admitted;
  stats[0] = e.budget;
  stats[1] = rows;
  stats[2] = e.tier;
  stats[3] = tau;
  stats[4] = cost.step_ns ? step_time(cost, cost.base(), rows) : 0;
}

}  // namespace dspark::cuda
