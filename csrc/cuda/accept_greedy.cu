#include "cuda/accept.cuh"
#include "cuda/launchers.h"

namespace dspark::cuda {
namespace {

__global__ void __launch_bounds__(kAcceptThreads) accept_greedy_kernel(const __grid_constant__ AcceptParams p) {
  const int64_t r = request_of_thread();
  if (r >= p.batch) return;
  const int64_t* draft = p.draft_tokens + r * p.gamma;
  // In the compact form rows past l - 1 were never computed; what lies there belongs to another request.
  const int64_t computed = p.cu_seqlens ? clamp64(int64_t(p.verify_lens[r]) - 1, 0, p.gamma) : p.gamma;
  int64_t raw = 0;
  while (raw < computed) {
    const int64_t* token = target_at(p, r, raw);
    if (!token || *token != draft[raw]) break;
    ++raw;
  }
  commit(p, r, raw);
}

}  // namespace

cudaError_t accept_greedy(const AcceptParams& p, cudaStream_t stream) {
  return launch_per_request(accept_greedy_kernel, p.batch, stream, p);
}

}  // namespace dspark::cuda
