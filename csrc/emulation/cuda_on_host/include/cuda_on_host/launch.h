// Kernel launches and the little of the host API that launchers use.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>

#include "cuda_on_host/language.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
};
typedef struct CUstream_st* cudaStream_t;
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace cuda_on_host {

// A mistake of device code: the text names the kind, the block, the thread and the place.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  bool shuffle = false;             // run ready threads in random order
  uint64_t seed = 0;                // of that order
  int poison = 0xa5;                // byte that fills shared memory before each block; below 0: zeros
  size_t shared_limit = 99 * 1024;  // dynamic shared memory that a block may opt in to: sm_120 has the least
};
Options& options();
uint64_t& launches();  // that have run

cudaError_t run(const void* kernel, const cudaLaunchConfig_t& config, const std::function<void()>& body);
void allow_shared(const void* kernel, int bytes);

}  // namespace cuda_on_host

template <class T>
cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute, int bytes) {
  if (bytes < 0 || size_t(bytes) > cuda_on_host::options().shared_limit) return cudaErrorInvalidValue;
  cuda_on_host::allow_shared(reinterpret_cast<const void*>(kernel), bytes);
  return cudaSuccess;
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return cuda_on_host::run(reinterpret_cast<const void*>(kernel), *config, [&] { kernel(Parameters(arguments)...); });
}

const char* cudaGetErrorString(cudaError_t error);
