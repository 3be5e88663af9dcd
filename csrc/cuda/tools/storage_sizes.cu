// Prints the dynamic shared memory of each kernel that has some, in bytes, as JSON: for the resource table.
#include <stdio.h>

#include "cuda/large.cuh"
#include "cuda/owners.cuh"

using namespace dspark::cuda;

int main() {
  const char* before = "{";
  for (const int64_t n : {128, 512, 2048, 6144, 16384})
    with_sort(n, [&](auto sort) {
      using Sort = decltype(sort);
      printf("%s\"plan of up to %d keys, %d threads\": %zu", before, Sort::kCapacity, Sort::kThreads,
             sizeof(BlockStorage<Sort>));
      before = ", ";
    });
  printf(", \"schedule of up to 512 keys\": %zu", sizeof(PlanStorage) + 512 * sizeof(uint32_t));
  printf(", \"schedule of up to 16384 keys\": %zu", sizeof(PlanStorage) + 16384 * sizeof(uint32_t));
  printf(", \"large plan\": %zu, \"rows by request\": %zu, \"block sum\": %zu}\n", sizeof(PlanStorage),
         sizeof(OwnerStorage), sizeof(TeamStorage));
}
