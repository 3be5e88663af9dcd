// One block: a sum of the lengths, then every slot. One launch; bound by it.
#include "cuda/launchers.h"
#include "cuda/team.cuh"

#include "common/order.h"

namespace dspark::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) pad_to_bucket_kernel(const __grid_constant__ PadToBucketParams p) {
  Team<kThreads> team(dynamic_shared<TeamStorage>());
  int64_t mine = 0;
  for (int64_t i = threadIdx.x; i < p.batch; i += kThreads) mine += max64(p.verify_lens[i], 0);
  const int64_t slack = max64(p.rows - team.sum(mine), 0), padding = p.slots - p.batch;
  const int64_t cap = p.cap < 0 ? 0x7fffffff : min64(p.cap, 0x7fffffff);
  const int64_t share = padding > 0 ? slack / padding : 0, rest = padding > 0 ? slack % padding : slack;
  for (int64_t i = threadIdx.x; i < p.slots; i += kThreads) {
    const int64_t j = i - p.batch, length = j < 0 ? max64(p.verify_lens[i], 0) : 0;
    int64_t padded = j < 0 ? length : share + (j < rest);
    if (padding == 0 && i == p.batch - 1) padded += rest;
    p.padded[i] = int32_t(min64(padded, cap));
    p.seqused[i] = int32_t(min64(length, cap));
  }
}

}  // namespace

cudaError_t pad_to_bucket(const PadToBucketParams& p, cudaStream_t stream) {
  if (p.slots == 0) return cudaSuccess;
  return launch(pad_to_bucket_kernel, 1, kThreads, sizeof(TeamStorage), stream, p);
}

}  // namespace dspark::cuda
