// What the planning kernels share: the shared memory of a block, and the steps from a budget to lengths and stats.
//
// One block and one launch while all keys fit shared memory (16384 keys, 67 KB): more blocks would have to wait for one
// another several times. Block size and keys per thread follow the problem, so that B = 8 does not pay for B = 1024.
// Above that (large.cuh): a kernel over all requests, CUB's device sort where a budget is searched, and one block that
// does the rest with these same functions on global memory.
#pragma once
#include "cuda/assign.cuh"
#include "cuda/search.cuh"
#include "cuda/sort.cuh"

namespace dspark::cuda {

struct PlanStorage {
  TeamStorage team;
  SelectStorage select;
  TieStorage ties;
  Totals totals;  // kept here during a sort, which needs every register
};

template <class Sort>
struct BlockStorage {
  PlanStorage plan;
  alignas(16) typename Sort::Storage keys;
};

// Keys of all requests from rows that `make_row(r)` gives.
template <int kThreads, class MakeRow, class Seen>
__device__ Totals collect(Team<kThreads>& team, const Rules& rules, uint32_t* keys, MakeRow make_row, Seen seen) {
  Totals mine;
  for (int64_t r = threadIdx.x; r < rules.batch; r += kThreads)
    collect_row(make_row(r), rules, r, keys, mine, [&](int64_t k, float s, const auto& row) { seen(r, k, s, row); });
  return sum_totals(team, mine);
}

// The keys of a plan: [0, n), in any order or sorted; scratch once the cut is known.
struct Keys {
  uint32_t* data;
  int64_t n;
  bool is_sorted;
};

template <int kThreads>
__device__ void finish_plan(Team<kThreads>& team, PlanStorage& storage, const Totals& totals, int64_t budget,
                            const Keys& keys, const Assignment& a, const Rules& rules, const Cost& cost,
                            const Tiers& tiers, int64_t* stats) {
  const Execution e = execute(team, totals, budget, rules.max_rows, tiers);
  const Cut cut = keys.is_sorted
                      ? cut_sorted(keys.data, totals.count, e.admitted, rules)
                      : cut_unsorted<kThreads>(storage.select, keys.data, keys.n, totals.count, e.admitted, rules);
  const int64_t tau = assign(team, storage.ties, a, rules, cut, keys.data);
  if (threadIdx.x == 0) write_stats(stats, totals, e, tau, cost);
}

// plan_budget once the keys are sorted.
template <int kThreads>
__device__ void finish_budget(Team<kThreads>& team, const Totals& totals, const uint32_t* sorted,
                              const PlanBudgetParams& p) {
  const int64_t budget = search_budget(team, sorted, totals, p.rules, p.cost, p.search, p.min_gain_ppm);
  const Execution e = execute(team, totals, budget, p.rules.max_rows, p.tiers);
  const int64_t tau = tau_by_warp(sorted, totals, e.admitted);
  if (threadIdx.x == 0) write_stats(p.stats, totals, e, tau, p.cost);
  if (!p.tier_tau) return;
  for (int64_t i = threadIdx.x / 32; i < p.tiers.count; i += kThreads / 32) {
    const int64_t room = min64(max64(p.tiers.rows[i] - totals.min_rows, 0), totals.most(p.rules.max_rows));
    const int64_t filled = tau_by_warp(sorted, totals, min64(room, totals.count));
    if (threadIdx.x % 32 != 0) continue;
    p.tier_tau[i] = filled;
    p.tier_tau[p.tiers.count + i] = p.tiers.rows[i] < totals.min_rows;
  }
}

// Calls run(Sort()) with the smallest sort that holds n keys; false if none does.
template <class Run>
bool with_sort(int64_t n, Run run) {
  if (n <= 128) run(CountingSort<128>());
  else if (n <= 512) run(RadixSort<256, 2>());
  else if (n <= 2048) run(RadixSort<512, 4>());
  else if (n <= 6144) run(RadixSort<512, 12>());
  else if (n <= 16384) run(RadixSort<512, 32>());
  else return false;
  return true;
}
constexpr int64_t kMostBlockKeys = 16384;

}  // namespace dspark::cuda
