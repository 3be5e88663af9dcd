// Four ways from a plan on the device to the graph of its tier; README.md says when to use which.
//
//   graph_native_planning switch | if | read | later
//
// Each step brings other confidences, plans, and runs the verify graph that was captured for the tier. The graphs of a
// runtime hold the whole target model; here they hold what such a graph begins with (ragged_layout at the tier's rows)
// and a kernel that notes which of them ran, by which the program checks itself.
#include <stdio.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>

#include "cuda/launchers.h"
#include "graphs.h"
#include "select_graph.cuh"

namespace dspark::example {
namespace {

constexpr int64_t kBatch = 64, kGamma = 7, kWidth = kGamma + 1;
constexpr int kSteps = 20;

__global__ void note_executed(int32_t* executed, int32_t rows) { *executed = rows; }

// The step's device memory, allocated once.
class Memory {
 public:
  explicit Memory(const std::vector<int32_t>& tiers) {
    std::vector<int32_t> step_ns;  // a staircase: a step takes the time of the graph that it runs in
    for (int32_t rows = 0, i = 0; rows <= kBatch * kWidth; ++rows) {
      if (rows > tiers[i]) ++i;
      step_ns.push_back(8'000'000 + 20'000 * tiers[i]);
    }
    step = {kBatch, kGamma, allocate<float>(kBatch * kGamma), copied(step_ns), copied(tiers), int64_t(tiers.size()),
            tiers.back(), allocate<float>(kBatch * kGamma), allocate<int32_t>(kBatch), allocate<int32_t>(kBatch + 1),
            allocate<int64_t>(5), allocate<int64_t>(5), allocate<int32_t>(tiers.back()),
            allocate<int32_t>(tiers.back()), allocate<int32_t>(1)};
  }
  ~Memory() {
    for (void* p : owned_) cudaFree(p);
  }
  Memory(const Memory&) = delete;

  Step step;

 private:
  template <class T>
  T* allocate(int64_t count) {
    void* p;
    CHECK(cudaMalloc(&p, count * sizeof(T)));
    owned_.push_back(p);
    return static_cast<T*>(p);
  }
  template <class T>
  T* copied(const std::vector<T>& values) {
    T* p = allocate<T>(values.size());
    CHECK(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
  }
  std::vector<void*> owned_;
};

void plan(const Step& s, cudaStream_t stream) {
  CHECK(dspark::cuda::allocate_verify_lens(plan_of(s), nullptr, stream));  // 448 keys: one block, no workspace
}

void verify(const Step& s, int32_t rows, cudaStream_t stream) {
  CHECK(dspark::cuda::ragged_layout(layout_of(s, rows), stream));
  CHECK(dspark::cuda::launch(note_executed, 1, 1, 0, stream, s.executed, rows));
}

// One graph with everything in it: the plan, the choice and all verify graphs.
Graph capture_switch(const Step& s, const std::vector<int32_t>& tiers) {
  return Graph([&](cudaStream_t stream) {
    const auto count = unsigned(tiers.size());
    const auto handle = new_handle(stream, count);  // past the last body: none runs
    plan(s, stream);
    CHECK(dspark::cuda::launch(select_body, 1, kSelectThreads, 0, stream, s.stats, s.tiers, int(count), handle));
    capture_conditional(stream, handle, cudaGraphCondTypeSwitch, count,
                        [&](unsigned i, cudaStream_t inner) { verify(s, tiers[i], inner); });
  });
}

// The same before CUDA 12.8, which has no SWITCH: as many IF nodes as there are tiers, one after another.
Graph capture_ifs(const Step& s, const std::vector<int32_t>& tiers) {
  return Graph([&](cudaStream_t stream) {
    const auto count = int(tiers.size());
    if (count > kMostTiers) throw std::runtime_error("more tiers than IfHandles holds");
    IfHandles handles = {};
    for (int i = 0; i < count; ++i) handles.tier[i] = new_handle(stream, 0);
    plan(s, stream);
    CHECK(dspark::cuda::launch(select_ifs, 1, kSelectThreads, 0, stream, s.stats, s.tiers, count, handles));
    for (int i = 0; i < count; ++i)
      capture_conditional(stream, handles.tier[i], cudaGraphCondTypeIf, 1,
                          [&](unsigned, cudaStream_t inner) { verify(s, tiers[i], inner); });
  });
}

// The number of the smallest captured graph that holds so many rows.
size_t graph_for(const std::vector<int32_t>& tiers, int64_t rows) {
  const size_t i = std::lower_bound(tiers.begin(), tiers.end(), rows) - tiers.begin();
  if (i == tiers.size()) throw std::runtime_error("no graph is large enough: a runtime runs this step eagerly");
  return i;
}

// Issues one step on a stream.
using Issue = std::function<void(cudaStream_t)>;

// Host choice before the launch: the wait is for the plan and 8 bytes, less what the host does meanwhile.
Issue read_before_launch(const Step& s, const std::vector<int32_t>& tiers) {
  auto planning = std::make_shared<Graph>([&](cudaStream_t stream) { plan(s, stream); });
  auto graphs = std::make_shared<std::vector<Graph>>();
  for (int32_t rows : tiers) graphs->emplace_back([&](cudaStream_t stream) { verify(s, rows, stream); });
  auto tier = std::make_shared<AsyncInt>();
  return [=](cudaStream_t stream) {
    planning->launch(stream);
    tier->start(s.stats + kTierOfStats, stream);
    // ... what the host prepares for the step goes here ...
    (*graphs)[graph_for(tiers, max64(tier->wait(), s.batch))].launch(stream);
  };
}

// Host choice one step later: the host never waits for the present step. Its plan keeps within the tier that the step
// before asked for; what this step would have liked goes to the next one, or the tier could only ever shrink.
Issue read_one_step_later(const Step& s, const std::vector<int32_t>& tiers) {
  auto graphs = std::make_shared<std::vector<Graph>>();
  for (size_t i = 0; i < tiers.size(); ++i)
    graphs->emplace_back([&](cudaStream_t stream) {
      CHECK(dspark::cuda::allocate_verify_lens(plan_of(s, s.tiers + i, 1, tiers[i]), nullptr, stream));
      verify(s, tiers[i], stream);
      CHECK(dspark::cuda::plan_budget(wanted_of(s), nullptr, stream));
    });
  auto tier = std::make_shared<AsyncInt>();
  auto is_first = std::make_shared<bool>(true);
  return [=](cudaStream_t stream) {
    const int64_t rows = *is_first ? s.most_rows : tier->wait();  // of the last step, long since there
    *is_first = false;
    (*graphs)[graph_for(tiers, max64(rows, s.batch))].launch(stream);
    tier->start(s.wanted + kTierOfStats, stream);
  };
}

Issue issue_of(const std::string& mode, const Step& s, const std::vector<int32_t>& tiers) {
  if (mode == "read") return read_before_launch(s, tiers);
  if (mode == "later") return read_one_step_later(s, tiers);
  if (mode != "switch" && mode != "if") throw std::runtime_error("expected switch, if, read or later, got " + mode);
  auto graph = std::make_shared<Graph>(mode == "if" ? capture_ifs(s, tiers) : capture_switch(s, tiers));
  return [=](cudaStream_t stream) { graph->launch(stream); };
}

// Drafts of changing quality, so that one tier does not fit all steps.
void bring_confidences(const Step& s, int step, cudaStream_t stream) {
  std::mt19937 random(step);
  std::uniform_real_distribution<float> draw(0.05f * (step % 20), 1.0f);
  std::vector<float> values(s.batch * s.gamma);
  for (float& c : values) c = draw(random);
  CHECK(cudaMemcpyAsync(s.confidence, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice, stream));
  CHECK(cudaStreamSynchronize(stream));  // `values` goes out of scope; a runtime's confidences are born on the device
}

// Whether the graph that ran is that of the tier in stats, and holds the rows. Only the demonstration waits here.
bool is_right(const Step& s, int step, cudaStream_t stream) {
  int64_t stats[5];
  int32_t executed;
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(stats, s.stats, sizeof(stats), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&executed, s.executed, sizeof(executed), cudaMemcpyDeviceToHost));
  const bool right = executed == stats[kTierOfStats] && stats[1] <= executed;
  printf("step %2d: %3lld rows planned, graph of %3d rows ran%s\n", step, static_cast<long long>(stats[1]), executed,
         right ? "" : ": WRONG");
  return right;
}

int run(const std::string& mode) {
  const std::vector<int32_t> tiers = {64, 96, 128, 192, 256, 320, 384, 448, 512};
  const Memory memory(tiers);
  const Issue issue = issue_of(mode, memory.step, tiers);
  const Stream stream;
  bool all_right = true;
  for (int step = 0; step < kSteps; ++step) {
    bring_confidences(memory.step, step, stream.of);
    issue(stream.of);
    all_right &= is_right(memory.step, step, stream.of);
  }
  return all_right ? 0 : 1;
}

}  // namespace
}  // namespace dspark::example

int main(int argc, char** argv) {
  try {
    return dspark::example::run(argc > 1 ? argv[1] : "switch");
  } catch (const std::exception& error) {
    fprintf(stderr, "graph_native_planning: %s\n", error.what());
    return 2;
  }
}
