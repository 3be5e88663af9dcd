#include "cuda/launchers.h"
#include "cuda/moves.cuh"
#include "cuda/owners.cuh"

namespace dspark::cuda {
namespace {

__global__ void __launch_bounds__(kMoveThreads) gather_kernel(const __grid_constant__ MoveRowsParams p) {
  move_rows(p, p.rows, [&](int64_t row) -> int64_t {
    // Offsets may decrease: the owner is then what the specification's bisection finds.
    const int64_t i = owner_of(p.cu_seqlens, p.batch, row);
    if (i == p.batch) return -1;
    const int64_t k = row - p.cu_seqlens[i];
    return k >= 0 && k < p.width ? i * p.width + k : -1;
  });
}

}  // namespace

cudaError_t gather_from_strided(const MoveRowsParams& p, cudaStream_t stream) {
  return launch_move(gather_kernel, p, p.rows, stream);
}

}  // namespace dspark::cuda
