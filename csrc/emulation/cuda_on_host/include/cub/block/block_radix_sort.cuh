// The part of CUB's block radix sort that is in use: keys only, descending, with CUB's own rules for its storage. The
// result stays in the storage until each thread has read it, so writing there without a barrier is a race here too.
#pragma once
#include <algorithm>
#include <functional>

#include "cuda_runtime.h"

namespace cub {

struct NullType {};

template <class Key, int kThreads, int kItems, class Value = NullType, int kRadixBits = 4>
class BlockRadixSort {
 public:
  struct TempStorage {
    Key keys[kThreads * kItems];
  };

  explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}

  void SortDescendingBlockedToStriped(Key (&keys)[kItems], int begin_bit, int end_bit) {
    const int first = int(threadIdx.x) * kItems;
    for (int j = 0; j < kItems; ++j) storage_.keys[first + j] = keys[j];
    __syncthreads();
    const Key mask = Key((Key(1) << (end_bit - begin_bit)) - 1);
    if (threadIdx.x == 0)
      std::stable_sort(storage_.keys, storage_.keys + kThreads * kItems, [=](Key a, Key b) {
        return ((a >> begin_bit) & mask) > ((b >> begin_bit) & mask);
      });
    __syncthreads();
    for (int j = 0; j < kItems; ++j) keys[j] = storage_.keys[int(threadIdx.x) + j * kThreads];
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
