// The budget is known, so nothing is sorted: a radix select finds the cut (cut.cuh), lengths are counts (assign.cuh).
#include "cuda/large_given.cuh"

namespace dspark::cuda {
namespace {

template <int kThreads>
__device__ void schedule(Team<kThreads>& team, PlanStorage& storage, const Totals& totals, uint32_t* keys,
                         const ScheduleParams& p) {
  finish_plan(team, storage, totals, p.budget.get(), Keys{keys, p.rules.batch * p.rules.gamma, false},
              Assignment{p.survival, p.verify_lens, nullptr}, p.rules, p.cost, p.tiers, p.stats);
}

template <int kKeys>
struct KeyStorage {
  PlanStorage plan;
  uint32_t keys[kKeys];
};

template <int kThreads, int kKeys>
__global__ void __launch_bounds__(kThreads, 1) schedule_block(const __grid_constant__ ScheduleParams p) {
  auto& storage = dynamic_shared<KeyStorage<kKeys>>();
  Team<kThreads> team(storage.plan.team);
  const Totals totals = collect(
      team, p.rules, storage.keys, [&](int64_t r) { return MonotoneRow(p.survival, p.rules.gamma, r); },
      [](int64_t, int64_t, float, const MonotoneRow&) {});
  schedule(team, storage.plan, totals, storage.keys, p);
}

__global__ void __launch_bounds__(kLargeThreads, 1)
    schedule_large(const __grid_constant__ ScheduleParams p, const Totals* totals, uint32_t* keys) {
  auto& storage = dynamic_shared<PlanStorage>();
  Team<kLargeThreads> team(storage.team);
  schedule(team, storage, gather_totals(team, totals, p.rules.batch), keys, p);
}

template <int kThreads, int kKeys>
cudaError_t launch_block(const ScheduleParams& p, cudaStream_t stream) {
  return launch(schedule_block<kThreads, kKeys>, 1, kThreads, sizeof(KeyStorage<kKeys>), stream, p);
}

cudaError_t launch_large(const ScheduleParams& p, void* workspace, cudaStream_t stream) {
  const LargeWorkspace w(workspace, p.rules.batch * p.rules.gamma);
  const cudaError_t error = launch_collect_given(p.survival, p.rules, w.current, w.current_totals, stream);
  if (error != cudaSuccess) return error;
  return launch(schedule_large, 1, kLargeThreads, sizeof(PlanStorage), stream, p, w.current_totals, w.current);
}

}  // namespace

cudaError_t schedule_verify_lens(const ScheduleParams& p, void* workspace, cudaStream_t stream) {
  const int64_t n = p.rules.batch * p.rules.gamma;
  if (n <= 512) return launch_block<128, 512>(p, stream);
  if (n <= kMostBlockKeys) return launch_block<512, kMostBlockKeys>(p, stream);
  return launch_large(p, workspace, stream);
}

}  // namespace dspark::cuda
