// Keys, one sort, one search (sort.cuh, search.cuh); tau of each tier by a warp that sums its best candidates.
#include "cuda/large_given.cuh"

namespace dspark::cuda {
namespace {

template <class Sort>
__global__ void __launch_bounds__(Sort::kThreads, 1) plan_budget_block(const __grid_constant__ PlanBudgetParams p) {
  auto& storage = dynamic_shared<BlockStorage<Sort>>();
  Team<Sort::kThreads> team(storage.plan.team);
  const Totals collected = collect(
      team, p.rules, storage.keys.keys, [&](int64_t r) { return MonotoneRow(p.survival, p.rules.gamma, r); },
      [](int64_t, int64_t, float, const MonotoneRow&) {});
  if (threadIdx.x == 0) storage.plan.totals = collected;
  Sort::sort(storage.keys, int(p.rules.batch * p.rules.gamma));
  finish_budget(team, storage.plan.totals, storage.keys.keys, p);
}

__global__ void __launch_bounds__(kLargeThreads, 1)
    plan_budget_large(const __grid_constant__ PlanBudgetParams p, const Totals* totals, const uint32_t* sorted) {
  auto& storage = dynamic_shared<PlanStorage>();
  Team<kLargeThreads> team(storage.team);
  finish_budget(team, gather_totals(team, totals, p.rules.batch), sorted, p);
}

cudaError_t launch_large(const PlanBudgetParams& p, void* workspace, cudaStream_t stream) {
  const int64_t n = p.rules.batch * p.rules.gamma;
  const LargeWorkspace w(workspace, n);
  cudaError_t error = launch_collect_given(p.survival, p.rules, w.planning, w.planning_totals, stream);
  if (error == cudaSuccess) error = sort_keys(w.planning, w.sorted, n, w.sort, stream);
  if (error != cudaSuccess) return error;
  return launch(plan_budget_large, 1, kLargeThreads, sizeof(PlanStorage), stream, p, w.planning_totals, w.sorted);
}

}  // namespace

cudaError_t plan_budget(const PlanBudgetParams& p, void* workspace, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  const bool fits = with_sort(p.rules.batch * p.rules.gamma, [&](auto sort) {
    using Sort = decltype(sort);
    static_assert(sizeof(BlockStorage<Sort>) <= kMostShared, "fits the smallest target");
    error = launch(plan_budget_block<Sort>, 1, Sort::kThreads, sizeof(BlockStorage<Sort>), stream, p);
  });
  return fits ? error : launch_large(p, workspace, stream);
}

}  // namespace dspark::cuda
