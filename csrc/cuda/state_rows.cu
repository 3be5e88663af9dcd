// The two forms in which a compressor finds its state: explicit rows (state_rows) and a block table (state_blocks). A
// thread per element of the output; everything it reads is shared with its neighbours, so it comes from the cache.
#include "cuda/launchers.h"

#include "cuda/device.cuh"

namespace dspark::cuda {
namespace {

constexpr int kThreads = 256;

// 64-bit division is some 70 instructions: spared where 32 bits serve, which is nearly always.
__device__ __forceinline__ int64_t quotient(int64_t a, int64_t b) {
  return uint64_t(a | b) >> 32 ? a / b : int64_t(uint32_t(a) / uint32_t(b));
}
__device__ __forceinline__ int64_t remainder(int64_t a, int64_t b) {
  return uint64_t(a | b) >> 32 ? a % b : int64_t(uint32_t(a) % uint32_t(b));
}

// group * ring + phase, or the dummy row when it is no int32.
__device__ __forceinline__ int32_t ring_row(const StateRowsParams& p, int64_t group, int64_t phase) {
  if (group < 0 || group > INT32_MAX) return p.dummy_row;
  const int64_t row = group * p.ring + phase;
  return row <= INT32_MAX ? int32_t(row) : p.dummy_row;
}

__device__ __forceinline__ int32_t swa_row(const StateRowsParams& p, int64_t slot, int64_t position) {
  if (slot < 0 || slot >= p.slots || position >= p.max_context) return p.dummy_row;
  const int64_t token = p.req_to_token[slot * p.max_context + position];
  if (token < 0 || token >= p.tokens) return p.dummy_row;
  const int64_t w = p.full_to_swa[token];
  return w < 0 ? p.dummy_row : ring_row(p, quotient(w, p.swa_page), remainder(w, p.ring));
}

__device__ __forceinline__ int32_t state_row(const StateRowsParams& p, int64_t i, int64_t c) {
  const int64_t owned = int64_t(p.cu_seqlens[i + 1]) - p.cu_seqlens[i];
  const int64_t position = saturate32(p.start_pos[i]) - p.window + c;
  if (p.seqused[i] <= 0 || c >= p.window + owned || position < 0) return p.dummy_row;
  const int64_t slot = p.request_slot[i];
  return p.swa_page > 0 ? swa_row(p, slot, position) : ring_row(p, slot, remainder(position, p.ring));
}

__global__ void __launch_bounds__(kThreads) state_rows_kernel(const __grid_constant__ StateRowsParams p) {
  const int64_t columns = p.window + p.width, stride = int64_t(gridDim.x) * kThreads;
  for (int64_t e = int64_t(blockIdx.x) * kThreads + threadIdx.x; e < p.batch * columns; e += stride)
    p.state_rows[e] = state_row(p, quotient(e, columns), remainder(e, columns));
}

template <class Id>
__global__ void __launch_bounds__(kThreads) state_blocks_kernel(const __grid_constant__ StateBlocksParams p) {
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  for (int64_t e = int64_t(blockIdx.x) * kThreads + threadIdx.x; e < p.batch * p.blocks; e += stride) {
    const int64_t i = quotient(e, p.blocks), block = remainder(e, p.blocks);
    const int64_t start = saturate32(p.start_pos[i]), used = saturate32(p.seqused[i]);
    const int64_t kept_from = max64(0, (quotient(start, p.ratio) - (p.coff - 1)) * p.ratio);
    const int64_t begin = block * p.block_size;
    const bool keep = used > 0 && begin + p.block_size > kept_from && begin < start + used;
    reinterpret_cast<Id*>(p.state_blocks)[e] = keep ? reinterpret_cast<const Id*>(p.block_table)[e] : 0;
  }
}

}  // namespace

cudaError_t state_rows(const StateRowsParams& p, cudaStream_t stream) {
  const int64_t elements = p.batch * (p.window + p.width);
  if (elements == 0) return cudaSuccess;
  return launch(state_rows_kernel, blocks_for(elements, kThreads), kThreads, 0, stream, p);
}

cudaError_t state_blocks(const StateBlocksParams& p, cudaStream_t stream) {
  const int64_t elements = p.batch * p.blocks;
  if (elements == 0) return cudaSuccess;
  const auto kernel = p.id_bytes == 8 ? state_blocks_kernel<int64_t> : state_blocks_kernel<int32_t>;
  return launch(kernel, blocks_for(elements, kThreads), kThreads, 0, stream, p);
}

}  // namespace dspark::cuda
