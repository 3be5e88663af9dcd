// The path above one block's keys: memory for them, and the kernel that fills it.
//
// One block then does what is left, over global memory: its rounds are of 2048 budgets, so B*N = 2^18 takes 128 of
// them. A step of that many rows lasts hundreds of milliseconds; a grid-wide search would save a fraction of one.
#pragma once
#include "cuda/launchers.h"
#include "cuda/plan.cuh"

namespace dspark::cuda {

constexpr int kCollectThreads = 256, kLargeThreads = 512;
constexpr int64_t kCollectBlocks = kMaxVerifyRows / kCollectThreads;

// Sorts keys[0, n) into `sorted`, descending; storage of sort_storage(n) bytes. Defined in large.cu.
cudaError_t sort_keys(const uint32_t* keys, uint32_t* sorted, int64_t n, void* storage, cudaStream_t stream);
size_t sort_storage(int64_t n);

// The caller's workspace, cut into parts.
struct LargeWorkspace {
  Totals* current_totals;   // [kCollectBlocks], of each block; those of planning are separate where they differ
  Totals* planning_totals;
  uint32_t *current, *planning, *sorted;  // [n]
  void* sort;

  LargeWorkspace(void* workspace, int64_t n) {
    unsigned char* at = static_cast<unsigned char*>(workspace);
    const auto take = [&at](size_t bytes) {
      unsigned char* const part = at;
      at += (bytes + 255) / 256 * 256;
      return static_cast<void*>(part);
    };
    current_totals = static_cast<Totals*>(take(kCollectBlocks * sizeof(Totals)));
    planning_totals = static_cast<Totals*>(take(kCollectBlocks * sizeof(Totals)));
    current = static_cast<uint32_t*>(take(size_t(n) * 4));
    planning = static_cast<uint32_t*>(take(size_t(n) * 4));
    sorted = static_cast<uint32_t*>(take(size_t(n) * 4));
    sort = take(sort_storage(n));
    bytes = size_t(at - static_cast<unsigned char*>(workspace));
  }
  size_t bytes;
};

// Each block writes the keys and totals of its requests.
template <class MakeRow, class Seen>
__device__ void collect_block(const Rules& rules, uint32_t* keys, Totals* totals, MakeRow make_row, Seen seen) {
  PlanStorage& storage = dynamic_shared<PlanStorage>();
  Team<kCollectThreads> team(storage.team);
  Totals mine;
  const int64_t r = int64_t(blockIdx.x) * kCollectThreads + threadIdx.x;
  if (r < rules.batch)
    collect_row(make_row(r), rules, r, keys, mine, [&](int64_t k, float s, const auto& row) { seen(r, k, s, row); });
  const Totals all = sum_totals(team, mine);
  if (threadIdx.x == 0) totals[blockIdx.x] = all;
}

inline int64_t collect_blocks(int64_t batch) { return ceil_div(batch, kCollectThreads); }

// The sum of all blocks' totals, in every thread.
template <int kThreads>
__device__ Totals gather_totals(Team<kThreads>& team, const Totals* totals, int64_t batch) {
  Totals mine;
  for (int64_t i = threadIdx.x; i < (batch + kCollectThreads - 1) / kCollectThreads; i += kThreads) {
    mine.count += totals[i].count;
    mine.tau0 += totals[i].tau0;
    mine.min_rows += totals[i].min_rows;
    mine.cap_rows += totals[i].cap_rows;
  }
  return sum_totals(team, mine);
}

}  // namespace dspark::cuda
