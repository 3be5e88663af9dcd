// Dynamic shared memory as one struct, and kernel launches: all that differs between nvcc and csrc/emulation is here.
#pragma once
#include <cuda_runtime.h>

namespace dspark::cuda {

#if defined(__CUDACC__)
template <class T>
__device__ __forceinline__ T& dynamic_shared() {
  extern __shared__ __align__(16) unsigned char dspark_dynamic_shared[];
  return *reinterpret_cast<T*>(dspark_dynamic_shared);
}
#else
template <class T>
T& dynamic_shared() {
  return *reinterpret_cast<T*>(cuda_on_host::dynamic_shared);
}
#endif

constexpr size_t kDefaultShared = 48 << 10;  // a block has it without asking
constexpr size_t kMostShared = 99 << 10;     // the least that every target lets a block ask for (sm_120)

// The launch may be captured: it allocates nothing and waits for nothing.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared, cudaStream_t stream,
                   Arguments&&... arguments) {
  if (shared > kDefaultShared) {
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared));
    if (error != cudaSuccess) return error;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(unsigned(blocks));
  config.blockDim = dim3(unsigned(threads));
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Arguments&&>(arguments)...);
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Blocks of `threads` for `items`, within what one launch may have; kernels stride by the grid.
inline int64_t blocks_for(int64_t items, int threads) {
  const int64_t blocks = ceil_div(items, threads);
  return blocks < 65536 ? blocks : 65536;
}

}  // namespace dspark::cuda
