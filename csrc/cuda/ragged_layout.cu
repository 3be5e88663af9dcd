// A thread per row finds its request and writes the row's elements: stores are coalesced, and one long request costs no
// more than many short ones. The first block writes what is per request.
#include "cuda/launchers.h"
#include "cuda/owners.cuh"

namespace dspark::cuda {
namespace {

__device__ __forceinline__ int64_t length_of(const RaggedLayoutParams& p, int64_t i) {
  return max64(p.verify_lens[i], 0);
}

__device__ __forceinline__ int32_t cached_of(const RaggedLayoutParams& p, int64_t i) {
  const int64_t bound = int64_t(1) << 32;
  return saturate32(clamp64(p.prefix[i], -bound, bound) + length_of(p, i));
}

// KV geometry, by one block.
__device__ void write_cache(OwnerTeam& team, const RaggedLayoutParams& p) {
  if (p.cache_seqlens)
    for (int64_t i = threadIdx.x; i < p.batch; i += kOwnerThreads) p.cache_seqlens[i] = cached_of(p, i);
  if (p.cu_seqlens_k)
    sum_lengths(team, p.batch, p.cu_seqlens_k, [&](int64_t i) { return int64_t(cached_of(p, i)); });
}

__device__ void write_row(const RaggedLayoutParams& p, const int32_t* offsets, int64_t row) {
  const bool is_padding = row >= offsets[p.batch];
  const int64_t i = is_padding ? -1 : owner_of(offsets, p.batch, row);
  const int64_t k = is_padding ? 0 : row - offsets[i];
  p.row_request[row] = int32_t(i);
  p.row_offset[row] = int32_t(k);
  // A senseless prefix wraps instead of overflowing.
  if (p.position) p.position[row] = is_padding ? 0 : int64_t(uint64_t(p.prefix[i]) + uint64_t(k));
  if (!p.verify_ids) return;
  int64_t id = 0;
  if (!is_padding && k == 0) id = p.root_tokens[i];
  else if (!is_padding && k <= p.gamma) id = p.draft_tokens[i * p.gamma + k - 1];
  p.verify_ids[row] = id;
}

__device__ void write_rows(const RaggedLayoutParams& p, const int32_t* offsets) {
  const int64_t stride = int64_t(gridDim.x) * kOwnerThreads;
  for (int64_t row = int64_t(blockIdx.x) * kOwnerThreads + threadIdx.x; row < p.rows; row += stride)
    write_row(p, offsets, row);
}

__global__ void __launch_bounds__(kOwnerThreads) ragged_layout_at_once(const __grid_constant__ RaggedLayoutParams p) {
  auto& storage = dynamic_shared<OwnerStorage>();
  OwnerTeam team(storage.team);
  sum_lengths(team, p.batch, storage.offsets, [&](int64_t i) { return length_of(p, i); });
  write_rows(p, storage.offsets);
  if (blockIdx.x > 0) return;
  for (int64_t i = threadIdx.x; i <= p.batch; i += kOwnerThreads) p.cu_seqlens[i] = storage.offsets[i];
  write_cache(team, p);
}

__global__ void __launch_bounds__(kOwnerThreads) ragged_layout_offsets(const __grid_constant__ RaggedLayoutParams p) {
  OwnerTeam team(dynamic_shared<OwnerStorage>().team);
  sum_lengths(team, p.batch, p.cu_seqlens, [&](int64_t i) { return length_of(p, i); });
  write_cache(team, p);
}

__global__ void __launch_bounds__(kOwnerThreads) ragged_layout_rows(const __grid_constant__ RaggedLayoutParams p) {
  write_rows(p, p.cu_seqlens);
}

}  // namespace

cudaError_t ragged_layout(const RaggedLayoutParams& p, cudaStream_t stream) {
  const int64_t blocks = max64(1, blocks_for(p.rows, kOwnerThreads));
  if (p.batch <= kBlockRequests)
    return launch(ragged_layout_at_once, blocks, kOwnerThreads, sizeof(OwnerStorage), stream, p);
  const cudaError_t error = launch(ragged_layout_offsets, 1, kOwnerThreads, sizeof(TeamStorage), stream, p);
  if (error != cudaSuccess) return error;
  return launch(ragged_layout_rows, blocks, kOwnerThreads, 0, stream, p);
}

}  // namespace dspark::cuda
