// One planted mistake of device code per kernel, and `clean`, which makes none: each must be reported by the emulation,
// or (clean) must not. Run as `cuda_faults NAME`; prints the fault or the result of the launch.
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

namespace {

int* shared() { return reinterpret_cast<int*>(cuda_on_host::dynamic_shared); }
constexpr unsigned kAll = 0xffffffffu;

// Uses everything in a legal way: barriers, a warp's own order, shuffles, votes, atomics, static and dynamic memory.
__global__ void clean(int* out, int n) {
  __shared__ int total;
  const int t = int(threadIdx.x), lane = t % 32;
  if (t == 0) total = 0;
  shared()[t] = t;
  __syncthreads();
  const int other = shared()[n - 1 - t];
  atomicAdd(&total, 1);
  __syncthreads();
  shared()[t] = other;
  __syncwarp();
  const int neighbour = shared()[t ^ 1];
  const int same = __shfl_xor_sync(kAll, other, 1);
  const bool all = __all_sync(kAll, same == neighbour);
  const unsigned group = __match_any_sync(kAll, lane / 8);
  if (lane < 16 && __ballot_sync(0xffffu, lane % 2) != 0xaaaau) out[t] = -1;
  else out[blockIdx.x * n + t] = all && __popc(group) == 8 ? total : -2;
}

// ---- barriers and warps: every build ----
__global__ void divergent_barrier(int*, int) {
  if (threadIdx.x < 7) __syncthreads();
  else
    __syncthreads();
}
__global__ void barrier_after_exit(int*, int) {
  if (threadIdx.x == 3) return;
  __syncthreads();
}
__global__ void missing_lane(int*, int) {
  if (threadIdx.x != 3) __shfl_sync(kAll, 1, 0);
}
__global__ void lane_outside_mask(int*, int) { __shfl_sync(0xffffu, 1, 0); }
__global__ void reads_absent_lane(int* out, int) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1, 20);
}
__global__ void lanes_meet_elsewhere(int*, int) {
  if (threadIdx.x % 2) __ballot_sync(kAll, 1);
  else
    __ballot_sync(kAll, 0);
}
__global__ void stack_overflow(int* out, int) {
  volatile char large[512 << 10];
  for (int i = (512 << 10) - 1; i >= 0; i -= 64) large[i] = char(i);
  out[0] = large[5];
}
__global__ void poisoned(int* out, int) { out[0] = shared()[0] == int(0xa5a5a5a5u) ? 42 : 0; }

// ---- races ----
__global__ void read_before_barrier(int* out, int n) {
  shared()[threadIdx.x] = 0;
  __syncthreads();
  shared()[threadIdx.x] = 1;
  out[threadIdx.x] = shared()[n - 1 - int(threadIdx.x)];
}
__global__ void write_after_read(int* out, int n) {
  shared()[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = shared()[n - 1 - int(threadIdx.x)];
  shared()[threadIdx.x] = 2;
}
__global__ void two_writes(int*, int) { shared()[threadIdx.x / 2] = int(threadIdx.x); }
__global__ void missing_syncwarp(int* out, int) {
  shared()[threadIdx.x] = 1;
  __shfl_sync(kAll, 1, 0);  // orders no memory
  out[threadIdx.x] = shared()[threadIdx.x ^ 1];
}
__global__ void atomic_and_plain(int* out, int) {
  shared()[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&shared()[0], 1);
  out[threadIdx.x] = shared()[0];
}
__global__ void blocks_write_one_place(int* out, int) { out[threadIdx.x] = int(blockIdx.x); }
__global__ void unwritten_dynamic(int* out, int) { out[threadIdx.x] = shared()[threadIdx.x]; }
__global__ void unwritten_static(int* out, int) {
  __shared__ int value;
  out[threadIdx.x] = value;
}

// ---- addresses and undefined behaviour ----
__global__ void past_dynamic_shared(int*, int n) { shared()[n + int(threadIdx.x)] = 1; }
__global__ void past_static_shared(int* out, int n) {
  __shared__ int values[8];
  values[threadIdx.x % 8] = 1;
  int* p = values;
  asm volatile("" : "+r"(p));  // the compiler would see it, a device compiler need not
  out[0] = p[n / 8];           // 8
}
__global__ void past_global(int* out, int n) { out[2 * n + int(threadIdx.x)] = 1; }
__global__ void misaligned(int* out, int) {
  if (threadIdx.x == 0) *reinterpret_cast<uint4*>(out + 1) = make_uint4(1, 2, 3, 4);
}
__global__ void overflow(int* out, int n) { out[threadIdx.x] = n * 40000000; }

struct Fault {
  const char* name;
  void (*kernel)(int*, int);
};
#define FAULT(name) {#name, name}
const Fault kFaults[] = {FAULT(clean), FAULT(divergent_barrier), FAULT(barrier_after_exit), FAULT(missing_lane),
                         FAULT(lane_outside_mask), FAULT(reads_absent_lane), FAULT(lanes_meet_elsewhere),
                         FAULT(stack_overflow), FAULT(poisoned), FAULT(read_before_barrier), FAULT(write_after_read),
                         FAULT(two_writes), FAULT(missing_syncwarp), FAULT(atomic_and_plain),
                         FAULT(blocks_write_one_place), FAULT(unwritten_dynamic), FAULT(unwritten_static),
                         FAULT(past_dynamic_shared), FAULT(past_static_shared), FAULT(past_global), FAULT(misaligned),
                         FAULT(overflow)};

// Launches that a device refuses.
int refused(const char* name) {
  cudaLaunchConfig_t c;
  c.blockDim = dim3(64);
  c.dynamicSmemBytes = 64 * sizeof(int);
  if (!strcmp(name, "block_too_large")) c.blockDim = dim3(1025);
  else if (!strcmp(name, "empty_grid")) c.gridDim = dim3(0);
  else if (!strcmp(name, "grid_too_high")) c.gridDim = dim3(1, 65536);
  else if (!strcmp(name, "shared_not_asked_for")) c.dynamicSmemBytes = 49 << 10;
  else if (!strcmp(name, "shared_past_target"))
    return cudaFuncSetAttribute(clean, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10);
  else return -1;
  return cudaLaunchKernelEx(&c, clean, static_cast<int*>(nullptr), 0);
}

}  // namespace

int main(int, char** arguments) {
  for (const Fault& fault : kFaults) {
    if (strcmp(fault.name, arguments[1]) != 0) continue;
    constexpr int kThreads = 64;
    int* out = new int[2 * kThreads]();
    cudaLaunchConfig_t c;
    c.gridDim = dim3(2);
    c.blockDim = dim3(kThreads);
    c.dynamicSmemBytes = kThreads * sizeof(int);
    try {
      const cudaError_t error = cudaLaunchKernelEx(&c, fault.kernel, out, kThreads);
      printf("%s, out[0] = %d\n", cudaGetErrorString(error), out[0]);
    } catch (const cuda_on_host::Fault& f) {
      printf("fault: %s\n", f.what());
    }
    delete[] out;
    return 0;
  }
  const int error = refused(arguments[1]);
  if (error < 0) return 2;
  printf("%s\n", cudaGetErrorString(cudaError_t(error)));
  return 0;
}
