#include "cuda/accept.cuh"
#include "cuda/launchers.h"

namespace dspark::cuda {
namespace {

__global__ void __launch_bounds__(kAcceptThreads) update_offset_kernel(const __grid_constant__ UpdateOffsetParams p) {
  const int64_t r = request_of_thread();
  if (r >= p.batch) return;
  const int64_t correct = clamp64(p.correct_len[r], 0, p.gamma);
  learn(p.learning, p.gamma, r, correct, clamp64(p.verify_lens[r], 0, p.gamma + 1));
}

}  // namespace

cudaError_t update_offset(const UpdateOffsetParams& p, cudaStream_t stream) {
  return launch_per_request(update_offset_kernel, p.batch, stream, p);
}

}  // namespace dspark::cuda
