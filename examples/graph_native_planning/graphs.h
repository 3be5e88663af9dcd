// Host side: capturing, conditional nodes, and the read of one int. Written to the graph API of CUDA 13; in 12.x
// cudaGraphAddNode and cudaStreamUpdateCaptureDependencies take no edge data.
#pragma once
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace dspark::example {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}
#define CHECK(call) dspark::example::check(call, #call)

struct Stream {
  cudaStream_t of = nullptr;
  Stream() { CHECK(cudaStreamCreateWithFlags(&of, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(of); }
  Stream(const Stream&) = delete;
};

// An executable graph of what `issue(stream)` launches.
struct Graph {
  cudaGraphExec_t exec = nullptr;

  template <class Issue>
  explicit Graph(Issue issue) {
    Stream stream;
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream.of, cudaStreamCaptureModeRelaxed));
    issue(stream.of);
    CHECK(cudaStreamEndCapture(stream.of, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
  }
  ~Graph() {
    if (exec) cudaGraphExecDestroy(exec);
  }
  Graph(Graph&& other) : exec(other.exec) { other.exec = nullptr; }

  void launch(cudaStream_t stream) const { CHECK(cudaGraphLaunch(exec, stream)); }
};

// The graph that `stream` is being captured into, and what its next node would depend on.
struct Capture {
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* dependencies = nullptr;
  size_t count = 0;

  explicit Capture(cudaStream_t stream) {
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &dependencies, nullptr, &count));
    if (status != cudaStreamCaptureStatusActive) throw std::runtime_error("the stream is not being captured");
  }
};

// A handle that has `otherwise` at the start of each replay, until a kernel sets it.
inline cudaGraphConditionalHandle new_handle(cudaStream_t stream, unsigned otherwise) {
  cudaGraphConditionalHandle handle;
  CHECK(cudaGraphConditionalHandleCreate(&handle, Capture(stream).graph, otherwise, cudaGraphCondAssignDefault));
  return handle;
}

// Captures a conditional node after what `stream` holds so far; `issue(i, stream)` fills body i. What is captured
// later waits for the body that ran.
template <class Issue>
void capture_conditional(cudaStream_t stream, cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                         unsigned bodies, Issue issue) {
  const Capture before(stream);
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = bodies;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddNode(&node, before.graph, before.dependencies, nullptr, before.count, &params));
  for (unsigned i = 0; i < bodies; ++i) {
    Stream inner;
    CHECK(cudaStreamBeginCaptureToGraph(inner.of, params.conditional.phGraph_out[i], nullptr, nullptr, 0,
                                        cudaStreamCaptureModeRelaxed));
    issue(i, inner.of);
    cudaGraph_t body;  // the same as phGraph_out[i], which the node owns
    CHECK(cudaStreamEndCapture(inner.of, &body));
  }
  CHECK(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, cudaStreamSetCaptureDependencies));
}

// Brings one int64 to the host while the stream goes on: a pinned copy and an event behind it. `wait` waits for that
// event alone, not for what was launched after it.
class AsyncInt {
 public:
  AsyncInt() {
    CHECK(cudaMallocHost(&pinned_, sizeof(int64_t)));
    CHECK(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
  }
  ~AsyncInt() {
    cudaEventDestroy(done_);
    cudaFreeHost(pinned_);
  }
  AsyncInt(const AsyncInt&) = delete;

  void start(const int64_t* value, cudaStream_t stream) {
    CHECK(cudaMemcpyAsync(pinned_, value, sizeof(int64_t), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(done_, stream));
  }
  int64_t wait() const {
    CHECK(cudaEventSynchronize(done_));
    return *pinned_;
  }

 private:
  int64_t* pinned_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

}  // namespace dspark::example
