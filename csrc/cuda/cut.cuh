// Where the order of candidates is cut: a key, and how many of those equal to it are admitted with all greater ones.
// Sorted keys give it at once. For a budget that is known (given, or from history) nothing need be sorted: a radix
// select, four rounds of a 128-bin histogram, costs 13 barriers where a sort costs 77.
#pragma once
#include "cuda/candidates.cuh"

namespace dspark::cuda {

struct Cut {
  uint32_t key;
  int64_t ties;  // admitted of those equal to `key`; meant only when split
  bool split;    // some equals are admitted, some are not
};

constexpr int kDigitBits = 7, kBins = 1 << kDigitBits;

struct SelectStorage {
  uint32_t bins[kBins];
  uint32_t digit, above;
};

// Nothing or everything is admitted: a cut that no candidate, or every candidate, passes.
__device__ __forceinline__ Cut cut_at_end(const Rules& rules, int64_t admitted) {
  return {admitted > 0 ? survival_key(rules.survival_eps) : (uint32_t(1) << kKeyBits) - 1, 0, false};
}

__device__ __forceinline__ Cut cut_sorted(const uint32_t* sorted, int64_t count, int64_t admitted, const Rules& rules) {
  if (admitted <= 0 || admitted >= count) return cut_at_end(rules, admitted);
  const uint32_t key = sorted[admitted - 1];
  if (sorted[admitted] != key) return {key, 0, false};
  int64_t low = 0, high = admitted - 1;  // first of the equals; every thread reads the same words
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (sorted[middle] > key) low = middle + 1;
    else high = middle;
  }
  return {key, admitted - low, true};
}

// The digit whose bin holds the `wanted`-th largest, and how many lie above it; by the first warp, four bins a lane.
__device__ __forceinline__ void find_digit(SelectStorage& storage, int64_t wanted) {
  constexpr int kPerLane = kBins / 32;
  const int lane = int(threadIdx.x), top = kBins - 1 - lane * kPerLane;
  int64_t mine = 0;
  for (int j = 0; j < kPerLane; ++j) mine += storage.bins[top - j];
  int64_t above = exclusive_sum_warp(mine);
  if (above >= wanted || above + mine < wanted) return;
  int digit = top;
  while (above + storage.bins[digit] < wanted) above += storage.bins[digit--];
  storage.digit = uint32_t(digit);
  storage.above = uint32_t(above);
}

// keys[0, n) with `count` candidates among them.
template <int kThreads>
__device__ Cut cut_unsorted(SelectStorage& storage, const uint32_t* keys, int64_t n, int64_t count, int64_t admitted,
                            const Rules& rules) {
  if (admitted <= 0 || admitted >= count) return cut_at_end(rules, admitted);
  uint32_t prefix = 0;
  int64_t wanted = admitted;
  for (int shift = kKeyBits - kDigitBits; shift >= 0; shift -= kDigitBits) {
    for (int i = int(threadIdx.x); i < kBins; i += kThreads) storage.bins[i] = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += kThreads)
      if (keys[i] >> (shift + kDigitBits) == prefix) atomicAdd(&storage.bins[(keys[i] >> shift) % kBins], 1u);
    __syncthreads();
    if (threadIdx.x < 32) find_digit(storage, wanted);
    __syncthreads();
    prefix = prefix << kDigitBits | storage.digit;
    wanted -= storage.above;
  }
  return {prefix, wanted, wanted < storage.bins[prefix % kBins]};
}

}  // namespace dspark::cuda
