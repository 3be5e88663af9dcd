// A thread per request; one launch, bound by it.
#include "cuda/device.cuh"
#include "cuda/launchers.h"

namespace dspark::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) max_safe_kernel(const __grid_constant__ MaxSafeVerifyLenParams p) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.batch) return;
  const int64_t s = saturate32(p.start_pos[i]);
  const uint32_t ratio = uint32_t(p.ratio);  // s + 1 <= 2^31, so 32-bit division serves
  const int64_t threshold_of_one = (int64_t(uint32_t(s + 1) / ratio) - (p.coff - 1)) * p.ratio;
  const int64_t kept_from = max64(s, threshold_of_one);
  int64_t longest = (int64_t(uint32_t(kept_from) / ratio) + p.coff) * p.ratio - 1 - s;
  if (p.ring > 0) longest = min64(longest, p.ring - p.coff * p.ratio + 1);
  p.safe_lens[i] = int32_t(clamp64(longest, 1, p.max_verify_len));
}

}  // namespace

cudaError_t max_safe_verify_len(const MaxSafeVerifyLenParams& p, cudaStream_t stream) {
  if (p.batch == 0) return cudaSuccess;
  return launch(max_safe_kernel, ceil_div(p.batch, kThreads), kThreads, 0, stream, p);
}

}  // namespace dspark::cuda
