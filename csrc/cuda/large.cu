#include "cuda/large.cuh"

#include <cub/device/device_radix_sort.cuh>

namespace dspark::cuda {

size_t sort_storage(int64_t n) {
  size_t bytes = 0;
  const uint32_t* keys = nullptr;
  uint32_t* sorted = nullptr;
  cub::DeviceRadixSort::SortKeysDescending(nullptr, bytes, keys, sorted, int(n), 0, kKeyBits);
  return bytes;
}

cudaError_t sort_keys(const uint32_t* keys, uint32_t* sorted, int64_t n, void* storage, cudaStream_t stream) {
  size_t bytes = sort_storage(n);
  return cub::DeviceRadixSort::SortKeysDescending(storage, bytes, keys, sorted, int(n), 0, kKeyBits, stream);
}

size_t planning_workspace(int64_t batch, int64_t gamma) {
  const int64_t n = batch * gamma;
  return n <= kMostBlockKeys ? 0 : LargeWorkspace(nullptr, n).bytes;
}

}  // namespace dspark::cuda
