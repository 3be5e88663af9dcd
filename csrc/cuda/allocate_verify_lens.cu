// Everything in one block and one launch: survival, budget, cut, lengths, offsets, stats.
//
// Keys are collected from the history where there is one, else from the current confidences, and sorted once for the
// search. A budget that came from history, or was given, then needs only a selection among the current keys.
// Barriers at B = 64, G = 7: about 77 of the sort and 20 around it; 13 for the selection. Each input is read once.
#include "cuda/large.cuh"

namespace dspark::cuda {
namespace {

// What the budget is searched on; one place, so that the sort is compiled once.
struct Source {
  const Confidence& confidence;
  const Freshness& freshness;
  bool is_current;
  __device__ Source(const AllocateParams& p, bool current)
      : confidence(current ? p.current.confidence : p.history),
        freshness(current ? p.current.freshness : p.freshness),
        is_current(current) {}
};

// Keeps the current survival and confidences; those of the history are not wanted by anyone.
struct Keep {
  float *survival, *calibrated;
  int64_t gamma;
  __device__ Keep(const AllocateParams& p, const Source& source)
      : survival(source.is_current ? p.current.survival : nullptr),
        calibrated(source.is_current ? p.current.calibrated : nullptr),
        gamma(p.rules.gamma) {}
  __device__ void operator()(int64_t r, int64_t k, float s, const ProductRow& row) const {
    if (survival) survival[r * gamma + k] = s;
    if (calibrated) calibrated[r * gamma + k] = row.calibrated();
  }
};

template <int kThreads>
__device__ Totals collect_from(Team<kThreads>& team, const AllocateParams& p, const Source& source, uint32_t* keys) {
  return collect(
      team, p.rules, keys,
      [&](int64_t r) { return ProductRow(source.confidence, source.freshness, p.rules.gamma, r); }, Keep(p, source));
}

template <int kThreads>
__device__ void finish(Team<kThreads>& team, PlanStorage& storage, const Totals& totals, int64_t budget,
                       const Keys& keys, const AllocateParams& p) {
  finish_plan(team, storage, totals, budget, keys, Assignment{p.current.survival, p.verify_lens, p.cu_seqlens},
              p.rules, p.cost, p.tiers, p.stats);
}

template <class Sort>
__global__ void __launch_bounds__(Sort::kThreads, 1) allocate_block(const __grid_constant__ AllocateParams p) {
  auto& storage = dynamic_shared<BlockStorage<Sort>>();
  Team<Sort::kThreads> team(storage.plan.team);
  uint32_t* const keys = storage.keys.keys;
  const int64_t n = p.rules.batch * p.rules.gamma;
  int64_t budget = 0;
  Totals totals;
  const bool searches = !p.budget.given(), on_history = searches && p.has_history;
  if (searches) {
    totals = collect_from(team, p, Source(p, !on_history), keys);
    if (threadIdx.x == 0) storage.plan.totals = totals;
    Sort::sort(storage.keys, int(n));
    totals = storage.plan.totals;
    budget = search_budget(team, keys, totals, p.rules, p.cost, p.search, p.min_gain_ppm);
  } else {
    budget = p.budget.get();
  }
  if (!searches || on_history) {
    __syncthreads();  // the history's keys have been read
    totals = collect_from(team, p, Source(p, true), keys);
  }
  finish(team, storage.plan, totals, budget, Keys{keys, n, searches && !on_history}, p);
}

__global__ void __launch_bounds__(kCollectThreads)
    allocate_collect(const __grid_constant__ AllocateParams p, bool current, uint32_t* keys, Totals* totals) {
  const Source source(p, current);
  collect_block(
      p.rules, keys, totals,
      [&](int64_t r) { return ProductRow(source.confidence, source.freshness, p.rules.gamma, r); }, Keep(p, source));
}

__global__ void __launch_bounds__(kLargeThreads, 1)
    allocate_large(const __grid_constant__ AllocateParams p, const __grid_constant__ LargeWorkspace w) {
  auto& storage = dynamic_shared<PlanStorage>();
  Team<kLargeThreads> team(storage.team);
  const Totals totals = gather_totals(team, w.current_totals, p.rules.batch);
  const bool searches = !p.budget.given();
  int64_t budget = 0;
  if (searches) {
    const Totals planning = p.has_history ? gather_totals(team, w.planning_totals, p.rules.batch) : totals;
    budget = search_budget(team, w.sorted, planning, p.rules, p.cost, p.search, p.min_gain_ppm);
  } else {
    budget = p.budget.get();
  }
  const bool is_sorted = searches && !p.has_history;
  const Keys keys = {is_sorted ? w.sorted : w.current, p.rules.batch * p.rules.gamma, is_sorted};
  finish(team, storage, totals, budget, keys, p);
}

cudaError_t launch_large(const AllocateParams& p, void* workspace, cudaStream_t stream) {
  const int64_t n = p.rules.batch * p.rules.gamma, blocks = collect_blocks(p.rules.batch);
  const LargeWorkspace w(workspace, n);
  const bool searches = !p.budget.given(), on_history = searches && p.has_history;
  const size_t shared = sizeof(PlanStorage);
  cudaError_t error =
      launch(allocate_collect, blocks, kCollectThreads, shared, stream, p, true, w.current, w.current_totals);
  if (error == cudaSuccess && on_history)
    error = launch(allocate_collect, blocks, kCollectThreads, shared, stream, p, false, w.planning, w.planning_totals);
  if (error == cudaSuccess && searches)
    error = sort_keys(on_history ? w.planning : w.current, w.sorted, n, w.sort, stream);
  if (error != cudaSuccess) return error;
  return launch(allocate_large, 1, kLargeThreads, shared, stream, p, w);
}

}  // namespace

cudaError_t allocate_verify_lens(const AllocateParams& p, void* workspace, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  const bool fits = with_sort(p.rules.batch * p.rules.gamma, [&](auto sort) {
    using Sort = decltype(sort);
    static_assert(sizeof(BlockStorage<Sort>) <= kMostShared, "fits the smallest target");
    error = launch(allocate_block<Sort>, 1, Sort::kThreads, sizeof(BlockStorage<Sort>), stream, p);
  });
  return fits ? error : launch_large(p, workspace, stream);
}

}  // namespace dspark::cuda
