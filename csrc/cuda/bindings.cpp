// Registers the CUDA operators (schemas: dspark_ops/ops/<stem>.py). With DSPARK_CUDA_HOST the very same launchers,
// built on csrc/emulation/cuda_on_host, are registered for CPU tensors in a namespace of their own.
#include <torch/csrc/stable/accelerator.h>

#include "common/bind_accept.h"
#include "common/bind_compressor.h"
#include "common/bind_layout.h"
#include "common/bind_planning.h"
#include "cuda/launchers.h"

namespace dspark::cuda {
namespace {

#if defined(DSPARK_CUDA_HOST)
struct OnDevice {
  explicit OnDevice(const Tensor&) {}
  cudaStream_t stream() const { return nullptr; }
};
#else
struct OnDevice {
  torch::stable::accelerator::DeviceIndex index;
  torch::stable::accelerator::DeviceGuard guard;
  explicit OnDevice(const Tensor& t) : index(t.get_device_index()), guard(index) {}
  cudaStream_t stream() const {
    return static_cast<cudaStream_t>(torch::stable::accelerator::getCurrentStream(index).nativeHandle());
  }
};
#endif

template <class P>
cudaError_t run(cudaError_t (*launcher)(const P&, cudaStream_t), const P& p, const Tensor&, cudaStream_t stream) {
  return launcher(p, stream);
}

// A planning launcher: its workspace is returned to the allocator at once, which reuses it in the stream's order.
template <class P>
cudaError_t run(cudaError_t (*launcher)(const P&, void*, cudaStream_t), const P& p, const Tensor& like,
                cudaStream_t stream) {
  const size_t bytes = planning_workspace(p.rules.batch, p.rules.gamma);
  if (bytes == 0) return launcher(p, nullptr, stream);
  Tensor workspace = torch::stable::new_empty(like, {int64_t(bytes)}, ScalarType::Byte);
  return launcher(p, workspace.data_ptr(), stream);
}

template <auto Bind, auto Launcher, class = decltype(Bind)>
struct CudaOperator;
template <auto Bind, auto Launcher, class P, class... A>
struct CudaOperator<Bind, Launcher, P (*)(A...)> {
  static void call(A... args) {
    const ReleaseCopies at_end;
    const Tensor& first = common_device(args...);
    const OnDevice device(first);
    const cudaError_t error = run(Launcher, Bind(args...), first, device.stream());
    STD_TORCH_CHECK(error == cudaSuccess, "CUDA: ", cudaGetErrorString(error));
  }
};

}  // namespace
}  // namespace dspark::cuda

#define DSPARK_CUDA(stem) \
  m.impl(#stem, TORCH_BOX((&dspark::cuda::CudaOperator<dspark::bind_##stem, dspark::cuda::stem>::call)))

#if defined(DSPARK_CUDA_HOST)
STABLE_TORCH_LIBRARY_IMPL(dspark_cuda_host, CPU, m) {
#else
STABLE_TORCH_LIBRARY_IMPL(dspark, CUDA, m) {
#endif
  // planning
  DSPARK_CUDA(prefix_survival);
  DSPARK_CUDA(plan_budget);
  DSPARK_CUDA(schedule_verify_lens);
  DSPARK_CUDA(allocate_verify_lens);

  // layout
  DSPARK_CUDA(gather_from_strided);
  DSPARK_CUDA(pad_to_bucket);
  DSPARK_CUDA(ragged_layout);
  DSPARK_CUDA(scatter_to_strided);

  // compressor
  DSPARK_CUDA(compressor_layout);
  DSPARK_CUDA(max_safe_verify_len);
  DSPARK_CUDA(state_blocks);
  DSPARK_CUDA(state_rows);

  // acceptance
  DSPARK_CUDA(accept_greedy);
  DSPARK_CUDA(finalize_accept);
  DSPARK_CUDA(update_offset);
}
