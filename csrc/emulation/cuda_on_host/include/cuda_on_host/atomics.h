// Atomics. One fiber runs at a time, so a plain read and write is atomic; the race check is told.
#pragma once
#include "cuda_on_host/machine.h"

namespace cuda_on_host {

template <class T>
struct Same {
  using type = T;
};

template <class T, class Change>
__attribute__((no_sanitize("thread"), noinline)) T update(T* address, Change change) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics are of 4 or 8 bytes");
  atomic_access(address, sizeof(T));
  const T before = *address;
  *address = change(before);
  return before;
}

}  // namespace cuda_on_host

#define CUDA_ON_HOST_ATOMIC(name, after)                                    \
  template <class T>                                                        \
  T name(T* address, typename cuda_on_host::Same<T>::type value) {          \
    return cuda_on_host::update(address, [&](T before) -> T { return after; }); \
  }
CUDA_ON_HOST_ATOMIC(atomicAdd, T(before + value))
CUDA_ON_HOST_ATOMIC(atomicMin, value < before ? value : before)
CUDA_ON_HOST_ATOMIC(atomicMax, before < value ? value : before)
CUDA_ON_HOST_ATOMIC(atomicOr, before | value)
CUDA_ON_HOST_ATOMIC(atomicExch, value)
#undef CUDA_ON_HOST_ATOMIC

template <class T>
T atomicCAS(T* address, typename cuda_on_host::Same<T>::type compare, typename cuda_on_host::Same<T>::type value) {
  return cuda_on_host::update(address, [&](T before) -> T { return before == compare ? value : before; });
}
