// The large path's first step where survival is given: keys of plan_budget and schedule_verify_lens.
#pragma once
#include "cuda/large.cuh"

namespace dspark::cuda {

static __global__ void __launch_bounds__(kCollectThreads)
    collect_given(const float* survival, const __grid_constant__ Rules rules, uint32_t* keys, Totals* totals) {
  collect_block(
      rules, keys, totals, [&](int64_t r) { return MonotoneRow(survival, rules.gamma, r); },
      [](int64_t, int64_t, float, const MonotoneRow&) {});
}

inline cudaError_t launch_collect_given(const float* survival, const Rules& rules, uint32_t* keys, Totals* totals,
                                        cudaStream_t stream) {
  return launch(collect_given, collect_blocks(rules.batch), kCollectThreads, sizeof(PlanStorage), stream, survival,
                rules, keys, totals);
}

}  // namespace dspark::cuda
