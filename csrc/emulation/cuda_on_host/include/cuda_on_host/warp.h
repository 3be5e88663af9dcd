// Warp primitives. Reading a lane that is not in the mask is undefined on a device, and an error here.
#pragma once
#include <string.h>

#include "cuda_on_host/language.h"
#include "cuda_on_host/machine.h"

constexpr int warpSize = 32;

namespace cuda_on_host {

template <class T>
T shuffle(unsigned mask, T value, int source, bool in_range, Site site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  const uint64_t* values = meet(mask, &value, sizeof value, false, site);
  if (!in_range) return value;
  if (!(mask >> source & 1)) fail("a shuffle reads a lane that is not in its mask");
  memcpy(&value, values + source, sizeof value);
  return value;
}

inline int lane() { return int(linear_thread % 32); }
inline int segment(int width) { return lane() & ~(width - 1); }

inline unsigned votes(unsigned mask, bool vote, Site site) {
  const uint64_t* values = meet(mask, &vote, sizeof vote, false, site);
  unsigned result = 0;
  for (int i = 0; i < 32; ++i)
    if (mask >> i & 1) result |= unsigned(values[i] & 1) << i;
  return result;
}

template <class T>
unsigned matches(unsigned mask, T value, Site site) {
  const uint64_t* values = meet(mask, &value, sizeof value, false, site);
  unsigned result = 0;
  for (int i = 0; i < 32; ++i)
    if (mask >> i & 1) result |= unsigned(memcmp(values + i, &value, sizeof value) == 0) << i;
  return result;
}

}  // namespace cuda_on_host

inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_ON_HOST_SITE) {
  cuda_on_host::meet(mask, nullptr, 0, true, {file, line});
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_ON_HOST_SITE) {
  const int from = cuda_on_host::segment(width) | (source & (width - 1));
  return cuda_on_host::shuffle(mask, value, from, true, {file, line});
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_HOST_SITE) {
  const int from = cuda_on_host::lane() - int(delta);
  return cuda_on_host::shuffle(mask, value, from, from >= cuda_on_host::segment(width), {file, line});
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_HOST_SITE) {
  const int from = cuda_on_host::lane() + int(delta);
  return cuda_on_host::shuffle(mask, value, from, from < cuda_on_host::segment(width) + width, {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, CUDA_ON_HOST_SITE) {
  const int from = cuda_on_host::lane() ^ bits;
  return cuda_on_host::shuffle(mask, value, from, from < cuda_on_host::segment(width) + width, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int vote, CUDA_ON_HOST_SITE) {
  return cuda_on_host::votes(mask, vote != 0, {file, line});
}
inline int __any_sync(unsigned mask, int vote, CUDA_ON_HOST_SITE) {
  return cuda_on_host::votes(mask, vote != 0, {file, line}) != 0;
}
inline int __all_sync(unsigned mask, int vote, CUDA_ON_HOST_SITE) {
  return cuda_on_host::votes(mask, vote != 0, {file, line}) == mask;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, CUDA_ON_HOST_SITE) {
  return cuda_on_host::matches(mask, value, {file, line});
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all, CUDA_ON_HOST_SITE) {
  *all = cuda_on_host::matches(mask, value, {file, line}) == mask;
  return *all ? mask : 0;
}
