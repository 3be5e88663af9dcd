// Options, and the count of launches, from outside: for ctypes.
#include "cuda_on_host/launch.h"

extern "C" __attribute__((visibility("default"))) void cuda_on_host_options(bool shuffle, uint64_t seed, int poison,
                                                                           size_t shared_limit) {
  cuda_on_host::options() = {shuffle, seed, poison, shared_limit};
}

extern "C" __attribute__((visibility("default"))) uint64_t cuda_on_host_launches() { return cuda_on_host::launches(); }
