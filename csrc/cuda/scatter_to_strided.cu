#include "cuda/launchers.h"
#include "cuda/moves.cuh"

namespace dspark::cuda {
namespace {

__global__ void __launch_bounds__(kMoveThreads) scatter_kernel(const __grid_constant__ MoveRowsParams p) {
  move_rows(p, p.batch * p.width, [&](int64_t row) -> int64_t {
    const int64_t i = row / p.width, k = row % p.width, start = p.cu_seqlens[i];
    const int64_t from = start + k;
    return k < p.cu_seqlens[i + 1] - start && from >= 0 && from < p.rows ? from : -1;
  });
}

}  // namespace

cudaError_t scatter_to_strided(const MoveRowsParams& p, cudaStream_t stream) {
  return launch_move(scatter_kernel, p, p.batch * p.width, stream);
}

}  // namespace dspark::cuda
