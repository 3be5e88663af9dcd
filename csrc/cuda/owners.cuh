// Which request owns a row: an exclusive sum of lengths, then a bisection.
//
// Up to kBlockRequests each block sums all lengths for itself, in shared memory: one launch, any number of blocks, and
// a bisection of shared words. Summing 256 lengths is two barriers, far less than a second launch. Above, one block
// writes the offsets to global memory and a second launch reads them.
#pragma once
#include "common/order.h"
#include "cuda/team.cuh"

namespace dspark::cuda {

constexpr int kOwnerThreads = 256;
constexpr int64_t kBlockRequests = 4096;
using OwnerTeam = Team<kOwnerThreads>;

struct OwnerStorage {
  TeamStorage team;
  int32_t offsets[kBlockRequests + 1];
};

// offsets[0, batch]: saturated sums of length(i) >= 0.
template <class Length>
__device__ void sum_lengths(OwnerTeam& team, int64_t batch, int32_t* offsets, Length length) {
  int64_t before_round = 0;
  if (threadIdx.x == 0) offsets[0] = 0;
  for (int64_t round = 0; round < batch; round += kOwnerThreads) {
    const int64_t i = round + threadIdx.x, mine = i < batch ? length(i) : 0;
    int64_t total;
    const int64_t before = before_round + team.exclusive_sum(mine, total);
    if (i < batch) offsets[i + 1] = saturate32(before + mine);
    before_round += total;
  }
  __syncthreads();
}

// The first request whose end lies past `row`, or `batch`.
__device__ __forceinline__ int64_t owner_of(const int32_t* offsets, int64_t batch, int64_t row) {
  int64_t low = 0, high = batch;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (offsets[middle + 1] <= row) low = middle + 1;
    else high = middle;
  }
  return low;
}

}  // namespace dspark::cuda
