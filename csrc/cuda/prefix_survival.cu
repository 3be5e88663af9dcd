// One thread per request: the product is sequential in k, and a row of 5 to 15 loads that do not depend on one another
// keeps a thread busy. Small blocks spread a batch over more multiprocessors. One launch; bound by it.
#include "cuda/launchers.h"
#include "cuda/survival.cuh"

namespace dspark::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) prefix_survival_kernel(const __grid_constant__ SurvivalParams p) {
  const int64_t r = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (r >= p.batch) return;
  ProductRow row(p.confidence, p.freshness, p.gamma, r);
  for (int64_t k = 0; k < p.gamma; ++k) {
    p.survival[r * p.gamma + k] = row.next(k);
    if (p.calibrated) p.calibrated[r * p.gamma + k] = row.calibrated();
  }
}

}  // namespace

cudaError_t prefix_survival(const SurvivalParams& p, cudaStream_t stream) {
  if (p.batch == 0) return cudaSuccess;
  return launch(prefix_survival_kernel, ceil_div(p.batch, kThreads), kThreads, 0, stream, p);
}

}  // namespace dspark::cuda
