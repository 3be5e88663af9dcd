// Reductions and scans over the threads of one block: butterflies of shuffles, then one value per warp through shared
// memory. Two barriers each. Written here rather than taken from CUB because every thread needs the result (CUB's
// reduction returns it to one), and because sums are int64 and selections are exact ratios of three words.
#pragma once
#include <stdint.h>

#include "cuda/device.cuh"

namespace dspark::cuda {

constexpr unsigned kAllLanes = 0xffffffffu;

// Shuffles of any small struct, eight bytes at a time.
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int bits) {
  static_assert(sizeof(T) % 8 == 0, "moved in words of eight bytes");
  union Words {
    T value;
    unsigned long long word[sizeof(T) / 8];
    __device__ Words() {}
  } words;
  words.value = value;
#pragma unroll
  for (int i = 0; i < int(sizeof(T) / 8); ++i) words.word[i] = __shfl_xor_sync(kAllLanes, words.word[i], bits);
  return words.value;
}

// Plus is associative and commutative.
template <class T, class Plus>
__device__ __forceinline__ T reduce_warp(T value, Plus plus) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) value = plus(value, shuffle_xor(value, bits));
  return value;
}

__device__ __forceinline__ int64_t sum_warp(int64_t value) {
  return reduce_warp(value, [](int64_t a, int64_t b) { return a + b; });
}

// Sum of the values of lower lanes.
__device__ __forceinline__ int64_t exclusive_sum_warp(int64_t value) {
  const int lane = threadIdx.x % 32;
  int64_t inclusive = value;
#pragma unroll
  for (int delta = 1; delta < 32; delta *= 2) {
    const int64_t below = __shfl_up_sync(kAllLanes, inclusive, delta);
    if (lane >= delta) inclusive += below;
  }
  return inclusive - value;
}

struct TeamStorage {
  alignas(16) unsigned char words[32 * 16];  // one value of up to 16 bytes per warp
};

template <int kThreads>
class Team {
 public:
  static constexpr int kWarps = kThreads / 32;
  static_assert(kThreads % 32 == 0 && kThreads <= 1024, "whole warps");

  __device__ explicit Team(TeamStorage& storage) : storage_(storage) {}

  // `neutral` changes nothing; each thread gets the result.
  template <class T, class Plus>
  __device__ T reduce(T value, T neutral, Plus plus) {
    static_assert(sizeof(T) <= 16, "one slot of the storage");
    T* partial = reinterpret_cast<T*>(storage_.words);
    value = reduce_warp(value, plus);
    __syncthreads();  // the last use of the storage is over
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    return reduce_warp(lane < kWarps ? partial[lane] : neutral, plus);
  }

  __device__ int64_t sum(int64_t value) {
    return reduce(value, int64_t(0), [](int64_t a, int64_t b) { return a + b; });
  }
  __device__ int64_t min(int64_t value) {
    return reduce(value, INT64_MAX, [](int64_t a, int64_t b) { return a < b ? a : b; });
  }

  // Sum of the values of lower threads; `total` is the sum of all.
  __device__ int64_t exclusive_sum(int64_t value, int64_t& total) {
    int64_t* partial = reinterpret_cast<int64_t*>(storage_.words);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t below = exclusive_sum_warp(value);
    __syncthreads();
    if (lane == 31) partial[warp] = below + value;
    __syncthreads();
    const int64_t mine = lane < kWarps ? partial[lane] : 0;
    const int64_t before = exclusive_sum_warp(mine);
    total = __shfl_sync(kAllLanes, before + mine, 31);
    return below + __shfl_sync(kAllLanes, before, warp);
  }

 private:
  TeamStorage& storage_;
};

}  // namespace dspark::cuda
