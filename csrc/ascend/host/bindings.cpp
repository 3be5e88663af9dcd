// Registers the Ascend operators (schemas: dspark_ops/ops/<stem>.py). With DSPARK_ASCEND_HOST the very same launches,
// built on csrc/emulation/ascendc_on_host, are registered for CPU tensors in a namespace of their own.
#include "ascend/host/launch.h"
#include "ascend/host/submit.h"
#include "common/bind_planning.h"

#if defined(DSPARK_ASCEND_HOST)
#include "ascendc_on_host/machine.h"
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

// The emulation is told which memory a launch may touch.
void grant([[maybe_unused]] const Tensor* t) {
#if defined(DSPARK_ASCEND_HOST)
  if (t && t->is_contiguous()) ascendc_on_host::add_memory(t->data_ptr(), size_t(t->numel()) * t->element_size());
#endif
}

int64_t workspace_of(const SurvivalParams&) { return 0; }
template <class P>
int64_t workspace_of(const P& p) {
  return int64_t(planning_workspace(p.rules.batch, p.rules.gamma));
}

template <class Name, auto Bind, auto Launch, class = decltype(Bind)>
struct AscendOperator;
template <class Name, auto Bind, auto Launch, class P, class... A>
struct AscendOperator<Name, Bind, Launch, P (*)(A...)> {
  static void call(A... args) {
    struct Release {
      ~Release() { copies().clear(); }
    } release;
    const Tensor& first = common_device(args...);
    const P p = Bind(args...);
    OptTensor workspace;  // returned to the allocator at once, which reuses it in the order of the stream
    if (const int64_t bytes = workspace_of(p))
      workspace = torch::stable::new_empty(first, {bytes}, ScalarType::Byte);
    for (const Tensor* t : {tensor_of(args)..., tensor_of(workspace)}) grant(t);
    for (const Tensor& t : copies()) grant(&t);
    void* const scratch = workspace ? workspace->data_ptr() : nullptr;
    submit(Name::text, first.get_device_index(), [=](void* stream) { return Launch(p, scratch, stream); });
  }
};

#define DSPARK_NAME(stem)                                \
  struct stem##_name {                                   \
    static constexpr const char* text = "dspark_" #stem; \
  }
DSPARK_NAME(prefix_survival);
DSPARK_NAME(plan_budget);
DSPARK_NAME(schedule_verify_lens);
DSPARK_NAME(allocate_verify_lens);

}  // namespace
}  // namespace dspark::ascend

#define DSPARK_ASCEND(stem)                                                                                \
  m.impl(#stem, TORCH_BOX((&dspark::ascend::AscendOperator<dspark::ascend::stem##_name, dspark::bind_##stem, \
                                                           dspark::ascend::stem>::call)))

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
