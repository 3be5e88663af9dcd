#include "cuda/accept.cuh"
#include "cuda/launchers.h"

namespace dspark::cuda {
namespace {

__global__ void __launch_bounds__(kAcceptThreads) finalize_accept_kernel(const __grid_constant__ AcceptParams p) {
  const int64_t r = request_of_thread();
  if (r < p.batch) commit(p, r, clamp64(p.raw_correct_len[r], 0, p.gamma));
}

}  // namespace

cudaError_t finalize_accept(const AcceptParams& p, cudaStream_t stream) {
  return launch_per_request(finalize_accept_kernel, p.batch, stream, p);
}

}  // namespace dspark::cuda
