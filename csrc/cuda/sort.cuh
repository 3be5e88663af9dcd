// Sorting keys in shared memory, descending, by one block. Keys carry no index, so equal ones need no order.
//
// CUB's block radix sort, seven passes of four bits, needs some 77 barriers whatever the size: below some 160 keys a
// plain count of larger keys wins with two. Wider digits spill, a merge sort moves more, and a sort that carries a
// request index needs twice the registers and shared memory; all three were rejected.
#pragma once
#include <cub/block/block_radix_sort.cuh>

#include "common/order.h"
#include "cuda/team.cuh"

namespace dspark::cuda {

template <int kThreadCount>
struct CountingSort {
  static constexpr int kThreads = kThreadCount, kCapacity = kThreadCount;
  union Storage {
    uint32_t keys[kCapacity];
  };

  // keys[0, n): in any order before, descending after.
  __device__ static void sort(Storage& storage, int n) {
    const int i = int(threadIdx.x);
    const uint32_t key = i < n ? storage.keys[i] : 0;
    int rank = 0;
    for (int j = 0; j < n; ++j) rank += storage.keys[j] > key || (storage.keys[j] == key && j < i);
    __syncthreads();
    if (i < n) storage.keys[rank] = key;
    __syncthreads();
  }
};

template <int kThreadCount, int kItems>
struct RadixSort {
  static constexpr int kThreads = kThreadCount, kCapacity = kThreadCount * kItems;
  using Cub = cub::BlockRadixSort<uint32_t, kThreads, kItems, cub::NullType, 4>;
  union Storage {
    uint32_t keys[kCapacity];
    typename Cub::TempStorage cub;
  };

  __device__ static void sort(Storage& storage, int n) {
    const int t = int(threadIdx.x);
    uint32_t item[kItems];
#pragma unroll
    for (int j = 0; j < kItems; ++j) item[j] = t + j * kThreads < n ? storage.keys[t + j * kThreads] : 0;
    __syncthreads();
    Cub(storage.cub).SortDescendingBlockedToStriped(item, 0, kKeyBits);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kItems; ++j) storage.keys[t + j * kThreads] = item[j];
    __syncthreads();
  }
};

}  // namespace dspark::cuda
