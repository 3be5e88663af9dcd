// The device part of examples/graph_native_planning on the emulation: plan, choice of the graph, layout at its rows.
// A conditional handle is a place in memory here, so that the choice can be read. Input: B, gamma, tiers, step_ns and
// confidences as text; output: one JSON object.
#include <cuda_runtime.h>
#include <stdio.h>

#include <vector>

using cudaGraphConditionalHandle = unsigned*;
inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) { *handle = value; }

#include "cuda/launchers.h"
#include "select_graph.cuh"

using namespace dspark;
using namespace dspark::example;

namespace {

template <class T>
void print(const char* name, const T* values, int64_t count, const char* after) {
  printf("\"%s\": [", name);
  for (int64_t i = 0; i < count; ++i) printf("%s%lld", i ? ", " : "", static_cast<long long>(values[i]));
  printf("]%s", after);
}

bool failed(cudaError_t error) {
  if (error != cudaSuccess) fprintf(stderr, "%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}

}  // namespace

int main() {
  int64_t batch, gamma, count;
  if (scanf("%ld %ld %ld", &batch, &gamma, &count) != 3) return 2;
  const int64_t longest = batch * (gamma + 1);
  std::vector<int32_t> tiers(count), step_ns(longest + 1);
  std::vector<float> confidence(batch * gamma), survival(batch * gamma);
  for (int32_t& t : tiers) if (scanf("%d", &t) != 1) return 2;
  for (int32_t& t : step_ns) if (scanf("%d", &t) != 1) return 2;
  for (float& c : confidence) if (scanf("%f", &c) != 1) return 2;

  const int64_t most = tiers.back();
  std::vector<int32_t> lens(batch), cu(batch + 1), request(most, -7), offset(most, -7);
  std::vector<int64_t> stats(5), wanted(5);
  const Step s = {batch, gamma, confidence.data(), step_ns.data(), tiers.data(), count, most, survival.data(),
                  lens.data(), cu.data(), stats.data(), wanted.data(), request.data(), offset.data(), nullptr};
  if (failed(dspark::cuda::allocate_verify_lens(plan_of(s), nullptr, nullptr))) return 1;

  unsigned body = unsigned(count);  // the handle's default: no body
  std::vector<unsigned> ifs(kMostTiers);
  IfHandles handles;
  for (int i = 0; i < kMostTiers; ++i) handles.tier[i] = &ifs[i];
  const auto select = [&](auto kernel, auto handle) {
    return dspark::cuda::launch(kernel, 1, kSelectThreads, 0, nullptr, stats.data(), tiers.data(), int(count), handle);
  };
  if (failed(select(select_body, &body)) || failed(select(select_ifs, handles))) return 1;

  const int64_t rows = body < count ? tiers[body] : 0;
  if (body < count && failed(dspark::cuda::ragged_layout(layout_of(s, rows), nullptr))) return 1;
  if (failed(dspark::cuda::plan_budget(wanted_of(s), nullptr, nullptr))) return 1;
  printf("{\"body\": %u, ", body);
  print("ifs", ifs.data(), count, ", ");
  print("stats", stats.data(), 5, ", ");
  print("wanted", wanted.data(), 5, ", ");
  print("row_request", request.data(), most, ", ");

  // The plan within one tier, that the step before chose.
  const int64_t middle = count / 2;
  const AllocateParams within = plan_of(s, tiers.data() + middle, 1, tiers[middle]);
  if (failed(dspark::cuda::allocate_verify_lens(within, nullptr, nullptr))) return 1;
  print("within", stats.data(), 5, "}\n");
}
