// From the tier in stats to the graph that shall run, on the device.
//
// A plan leaves a tier in rows; a conditional node wants the number of a body. One warp compares the tier with every
// captured size, and the lane that finds it sets the condition. Where no lane does (tier -1: no graph is large enough)
// the handle keeps its default, with which no body runs, and stats tell the host to run the step eagerly.
#pragma once
#include "cuda/device.cuh"
#include "step.h"

namespace dspark::example {

constexpr int kMostTiers = 64;
constexpr int kSelectThreads = 32;

// One handle for each tier, by value: a captured launch keeps its arguments.
struct IfHandles {
  cudaGraphConditionalHandle tier[kMostTiers];
};

// The tiers are strictly ascending, so at most one lane finds its own.
template <class Chosen>
__device__ void find_tier(const int64_t* stats, const int32_t* tiers, int count, Chosen chosen) {
  const int64_t rows = stats[kTierOfStats];
  for (int i = threadIdx.x; i < count; i += kSelectThreads)
    if (tiers[i] == rows) chosen(i);
}

// SWITCH (CUDA 12.8): the condition is the number of the body.
__global__ void __launch_bounds__(kSelectThreads)
    select_body(const int64_t* stats, const int32_t* tiers, int count, cudaGraphConditionalHandle handle) {
  find_tier(stats, tiers, count, [&](int i) { cudaGraphSetConditional(handle, unsigned(i)); });
}

// IF (CUDA 12.4): a node for each tier, of which at most one is true.
__global__ void __launch_bounds__(kSelectThreads)
    select_ifs(const int64_t* stats, const int32_t* tiers, int count, const __grid_constant__ IfHandles handles) {
  find_tier(stats, tiers, count, [&](int i) { cudaGraphSetConditional(handles.tier[i], 1); });
}

}  // namespace dspark::example
