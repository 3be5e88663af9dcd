// A thread per compression entry finds its request by bisection, for one or both ratios in one launch (two above
// kBlockRequests). Blocks alternate between the ratios; the first block writes what is per request.
#include "cuda/launchers.h"
#include "cuda/owners.cuh"

namespace dspark::cuda {
namespace {

__device__ __forceinline__ uint32_t start_of(const CompressorLayoutParams& p, int64_t i) {
  return uint32_t(saturate32(p.start_pos[i]));
}

// Entries of request i. Lengths reach 2^32 - 2, so 32-bit division serves.
__device__ __forceinline__ int64_t entries_of(const CompressorLayoutParams& p, const CompressorTableParams& t,
                                              int64_t i) {
  const uint32_t start = start_of(p, i), end = start + uint32_t(saturate32(p.seqused[i])), ratio = uint32_t(t.ratio);
  return int64_t(end / ratio) - start / ratio;
}

// Slot of an entry; the pad slot when its page is missing or the slot does not fit the output's type.
__device__ __forceinline__ int64_t slot_of(const CompressorTableParams& t, int64_t request, uint32_t entry) {
  const uint32_t size = uint32_t(t.page_size), page = entry / size, within = entry % size;
  if (page >= t.pages) return t.pad_slot;
  const int64_t id = t.page_table[request * t.pages + page];
  const int64_t largest = t.slot.is_int64 ? INT64_MAX : INT32_MAX;
  if (id < 0) return t.pad_slot;
  // Below 2^31 pages of below 2^31 entries nothing overflows, and the long division is spared.
  const bool fits = id < int64_t(1) << 31 ? id * size + within <= largest : id <= (largest - within) / size;
  return fits ? id * size + within : t.pad_slot;
}

__device__ void write_entry(const CompressorLayoutParams& p, const CompressorTableParams& t, const int32_t* offsets,
                            int64_t c) {
  int64_t position = 0, slot = t.pad_slot, row = -1;
  if (c < offsets[p.batch]) {
    const int64_t i = owner_of(offsets, p.batch, c), start = start_of(p, i);
    const int64_t entry = int64_t(uint32_t(start) / uint32_t(t.ratio)) + (c - offsets[i]);
    row = p.cu_seqlens[i] + (entry + 1) * t.ratio - 1 - start;
    if (row < 0 || row >= p.rows) row = -1;
    if (row >= 0) {
      position = entry * t.ratio;
      slot = slot_of(t, i, uint32_t(entry));
    }
  }
  t.rope_position[c] = position;
  t.query_row[c] = int32_t(row);
  t.slot.set(c, slot);
}

__device__ void write_entries(const CompressorLayoutParams& p, const CompressorTableParams& t, const int32_t* offsets) {
  const int64_t stride = int64_t(gridDim.x / p.tables) * kOwnerThreads;
  for (int64_t c = int64_t(blockIdx.x / p.tables) * kOwnerThreads + threadIdx.x; c < t.capacity; c += stride)
    write_entry(p, t, offsets, c);
}

__device__ void write_requests(const CompressorLayoutParams& p) {
  for (int64_t i = threadIdx.x; i < p.batch; i += kOwnerThreads) {
    const int32_t start = saturate32(p.start_pos[i]), used = saturate32(p.seqused[i]);
    const int32_t kv = saturate32(int64_t(start) + used);
    p.start_pos_out[i] = start;
    p.seqused_out[i] = used;
    p.seqused_kv[i] = p.clamp_seqused_kv && kv < 1 ? 1 : kv;
  }
}

__global__ void __launch_bounds__(kOwnerThreads) compressor_at_once(const __grid_constant__ CompressorLayoutParams p) {
  auto& storage = dynamic_shared<OwnerStorage>();
  OwnerTeam team(storage.team);
  const CompressorTableParams& t = p.table[blockIdx.x % p.tables];
  sum_lengths(team, p.batch, storage.offsets, [&](int64_t i) { return entries_of(p, t, i); });
  write_entries(p, t, storage.offsets);
  if (blockIdx.x / p.tables > 0) return;
  for (int64_t i = threadIdx.x; i <= p.batch; i += kOwnerThreads) t.offsets[i] = storage.offsets[i];
  if (blockIdx.x == 0) write_requests(p);
}

__global__ void __launch_bounds__(kOwnerThreads) compressor_offsets(const __grid_constant__ CompressorLayoutParams p) {
  OwnerTeam team(dynamic_shared<OwnerStorage>().team);
  const CompressorTableParams& t = p.table[blockIdx.x];
  sum_lengths(team, p.batch, t.offsets, [&](int64_t i) { return entries_of(p, t, i); });
  if (blockIdx.x == 0) write_requests(p);
}

__global__ void __launch_bounds__(kOwnerThreads) compressor_entries(const __grid_constant__ CompressorLayoutParams p) {
  const CompressorTableParams& t = p.table[blockIdx.x % p.tables];
  write_entries(p, t, t.offsets);
}

}  // namespace

cudaError_t compressor_layout(const CompressorLayoutParams& p, cudaStream_t stream) {
  int64_t entries = 1;
  for (int k = 0; k < p.tables; ++k) entries = max64(entries, p.table[k].capacity);
  const int64_t blocks = blocks_for(entries, kOwnerThreads) * p.tables;
  if (p.batch <= kBlockRequests)
    return launch(compressor_at_once, blocks, kOwnerThreads, sizeof(OwnerStorage), stream, p);
  const cudaError_t error = launch(compressor_offsets, p.tables, kOwnerThreads, sizeof(TeamStorage), stream, p);
  if (error != cudaSuccess) return error;
  return launch(compressor_entries, blocks, kOwnerThreads, 0, stream, p);
}

}  // namespace dspark::cuda
