// Registers the Ascend operators with torch_npu (schemas: dspark_ops/ops/<stem>.py). With DSPARK_ASCEND_HOST the very
// same launches, built on csrc/emulation/ascendc_on_host, are registered for CPU tensors in a namespace of their own.
#include "ascend/host/launch.h"
#include "common/bind_planning.h"

#if defined(DSPARK_ASCEND_HOST)
#include "ascendc_on_host/machine.h"
#else
#include <torch_npu/csrc/core/npu/NPUGuard.h>
#include <torch_npu/csrc/core/npu/NPUStream.h>
#include <torch_npu/csrc/framework/OpCommand.h>
#endif

namespace dspark::ascend {
namespace {

const Tensor* tensor_of(const Tensor& t) { return &t; }
const Tensor* tensor_of(const OptTensor& t) { return t ? &*t : nullptr; }
template <class T>
const Tensor* tensor_of(const T&) {
  return nullptr;
}

// The first tensor; all others must be on its device.
template <class... A>
const Tensor& common_device(const A&... args) {
  const Tensor* first = nullptr;
  for (const Tensor* t : {tensor_of(args)...}) {
    if (!t) continue;
    if (!first) first = t;
    STD_TORCH_CHECK(t->device() == first->device(), "expected all tensors on one device");
  }
  return *first;
}

int64_t workspace_of(const SurvivalParams&) { return 0; }
template <class P>
int64_t workspace_of(const P& p) {
  return int64_t(planning_workspace(p.rules.batch, p.rules.gamma));
}

#if defined(DSPARK_ASCEND_HOST)

struct OnDevice {
  explicit OnDevice(const Tensor&) {}
};

// The memory that the kernel may touch: all tensors of the call, and their contiguous copies.
template <class... A>
void grant(const A&... args) {
  ascendc_on_host::clear_memory();
  for (const Tensor* t : {tensor_of(args)...})
    if (t && t->is_contiguous()) ascendc_on_host::add_memory(t->data_ptr(), size_t(t->numel()) * t->element_size());
  for (const Tensor& t : copies())
    ascendc_on_host::add_memory(t.data_ptr(), size_t(t.numel()) * t.element_size());
}

void grant_more(const Tensor& t) { ascendc_on_host::add_memory(t.data_ptr(), size_t(t.numel())); }

template <class P>
void enqueue(const char* name, uint32_t (*launch)(const P&, void*, void*), const P& p, void* workspace) {
  try {
    launch(p, workspace, nullptr);
  } catch (const ascendc_on_host::Fault& fault) {
    STD_TORCH_CHECK(false, name, ": ", fault.what());
  }
}

#else

struct OnDevice {
  c10_npu::NPUGuard guard;
  explicit OnDevice(const Tensor& t) : guard(c10::DeviceIndex(t.get_device_index())) {}
};

template <class... A>
void grant(const A&...) {}
void grant_more(const Tensor&) {}

// torch_npu issues launches from a queue of its own: the call owns its parameters. Memory that the caller frees
// meanwhile is reused in the order of the stream only, so it is still there when the kernel runs.
template <class P>
void enqueue(const char* name, uint32_t (*launch)(const P&, void*, void*), const P& p, void* workspace) {
  void* const stream = c10_npu::getCurrentNPUStream().stream(false);
  at_npu::native::OpCommand::RunOpApiV2(name, [=]() -> int { return int(launch(p, workspace, stream)); });
}

#endif

template <class Name, auto Bind, auto Launch, class = decltype(Bind)>
struct AscendOperator;
template <class Name, auto Bind, auto Launch, class P, class... A>
struct AscendOperator<Name, Bind, Launch, P (*)(A...)> {
  static void call(A... args) {
    struct Release {
      ~Release() { copies().clear(); }
    } release;
    const Tensor& first = common_device(args...);
    const OnDevice device(first);
    const P p = Bind(args...);
    grant(args...);
    OptTensor workspace;
    if (const int64_t bytes = workspace_of(p)) {
      workspace = torch::stable::new_empty(first, {bytes}, ScalarType::Byte);
      grant_more(*workspace);
    }
    enqueue(Name::text, Launch, p, workspace ? workspace->data_ptr() : nullptr);
  }
};

}  // namespace
}  // namespace dspark::ascend

#define DSPARK_NAME(stem)                               \
  struct stem##_name {                                  \
    static constexpr const char* text = "dspark_" #stem; \
  }
DSPARK_NAME(prefix_survival);
DSPARK_NAME(plan_budget);
DSPARK_NAME(schedule_verify_lens);
DSPARK_NAME(allocate_verify_lens);

#define DSPARK_ASCEND(stem) \
  m.impl(#stem,             \
         TORCH_BOX((&dspark::ascend::AscendOperator<stem##_name, dspark::bind_##stem, dspark::ascend::stem>::call)))

#if defined(DSPARK_ASCEND_HOST)
STABLE_TORCH_LIBRARY_IMPL(dspark_ascend_host, CPU, m) {
#else
STABLE_TORCH_LIBRARY_IMPL(dspark, PrivateUse1, m) {
#endif
  DSPARK_ASCEND(prefix_survival);
  DSPARK_ASCEND(plan_budget);
  DSPARK_ASCEND(schedule_verify_lens);
  DSPARK_ASCEND(allocate_verify_lens);
}
