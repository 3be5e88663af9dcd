// Race check: which accesses to memory are not ordered by a barrier, and which read shared memory nobody has written.
// It sees the accesses of sources that are compiled with -fsanitize=thread and linked without that sanitizer's runtime:
// races.cpp has the functions that the compiler then calls. In any other build nothing is seen and nothing is reported.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace cuda_on_host {

// Who accesses memory, and when: two accesses are ordered by their thread, by a block barrier between them, or, in one
// warp, by a __syncwarp of all lanes between them.
struct Moment {
  uint32_t thread;   // in the whole grid, from 1; 0 is nobody
  uint32_t block;
  uint32_t warp;     // in the block
  uint32_t barriers;
  uint32_t warp_syncs;
};

// Set by the machine while a thread runs, null otherwise.
extern const Moment* now;

// Some source is compiled so that its accesses are seen.
void see_accesses();
// Forgets everything before a launch.
void forget_accesses();
// Bytes that no thread has written yet. Called for all shared memory before each block.
void mark_unwritten(const void* begin, const void* end);
// Memory that one thread has for itself, or that belongs to the machine.
bool is_private(const void* address);

void record(const void* address, size_t bytes, bool is_write, bool is_atomic);

}  // namespace cuda_on_host
