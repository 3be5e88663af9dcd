// What device code asks of the machine: barriers, meetings of lanes, accesses that must be seen by the race check.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace cuda_on_host {

// A place in the source, so that two threads can be seen to wait at different ones.
struct Site {
  const char* file;
  int line;
};

// All threads of the block must come here, all at the same site.
void block_barrier(Site site);

// The lanes of `mask` meet at one site. Each leaves `bytes` (<= 8) of `value`; returns the 32 values left.
// With `orders`, memory accesses before it happen before those after it (__syncwarp; a shuffle does not promise that).
const uint64_t* meet(unsigned mask, const void* value, size_t bytes, bool orders, Site site);

// Tells the race check of an atomic access to memory.
void atomic_access(const void* address, size_t bytes);

// Ends the kernel with an error: thrown as cuda_on_host::Fault by the launch.
[[noreturn]] void fail(const char* message);

}  // namespace cuda_on_host

#define CUDA_ON_HOST_SITE int line = __builtin_LINE(), const char *file = __builtin_FILE()

inline void __syncthreads(CUDA_ON_HOST_SITE) { cuda_on_host::block_barrier({file, line}); }
inline void __threadfence() {}
