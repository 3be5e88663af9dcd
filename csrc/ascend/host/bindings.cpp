// Registers the Ascend operators (schemas: dspark_ops/ops/<stem>.py). With DSPARK_ASCEND_HOST the very same launches,
// built on csrc/emulation/ascendc_on_host, are registered for CPU tensors in a namespace of their own.
#include "ascend/host/launch.h"
#include "ascend/host/submit.h"
#include "common/bind_accept.h"
#include "common/bind_compressor.h"
#include "common/bind_layout.h"
#include "common/bind_planning.h"

#if defined(DSPARK_ASCEND_HOST)
#include "ascendc_on_host/machine.h"
#endif

namespace dspark::ascend {
namespace {

// The emulation is told which memory a launch may touch.
void grant([[maybe_unused]] const Tensor* t) {
#if defined(DSPARK_ASCEND_HOST)
  if (t && t->is_contiguous()) ascendc_on_host::add_memory(t->data_ptr(), size_t(t->numel()) * t->element_size());
#endif
}

template <class Name, auto Bind, auto Launch, class = decltype(Bind)>
struct AscendOperator;
template <class Name, auto Bind, auto Launch, class P, class... A>
struct AscendOperator<Name, Bind, Launch, P (*)(A...)> {
  static void call(A... args) {
    const ReleaseCopies at_end;
    const Tensor& first = common_device(args...);
    const P p = Bind(args...);
    OptTensor workspace;  // returned to the allocator at once, which reuses it in the order of the stream
    if (const size_t bytes = workspace_of(p))
      workspace = torch::stable::new_empty(first, {int64_t(bytes)}, ScalarType::Byte);
    for (const Tensor* t : {tensor_of(args)..., tensor_of(workspace)}) grant(t);
    for (const Tensor& t : copies()) grant(&t);
    void* const scratch = workspace ? workspace->data_ptr() : nullptr;
    submit(Name::text, first.get_device_index(), [=](Stream stream) { return Launch(p, scratch, stream); });
  }
};

#define DSPARK_NAME(stem, Params, blocks)                \
  struct stem##_name {                                   \
    static constexpr const char* text = "dspark_" #stem; \
  };
DSPARK_ASCEND_OPERATORS(DSPARK_NAME)
#undef DSPARK_NAME

}  // namespace
}  // namespace dspark::ascend

#define DSPARK_REGISTER(stem, Params, blocks)                                                                \
  m.impl(#stem, TORCH_BOX((&dspark::ascend::AscendOperator<dspark::ascend::stem##_name, dspark::bind_##stem, \
                                                           dspark::ascend::stem>::call)));

#if defined(DSPARK_ASCEND_HOST)
STABLE_TORCH_LIBRARY_IMPL(dspark_ascend_host, CPU, m) { DSPARK_ASCEND_OPERATORS(DSPARK_REGISTER) }
#else
STABLE_TORCH_LIBRARY_IMPL(dspark, PrivateUse1, m) { DSPARK_ASCEND_OPERATORS(DSPARK_REGISTER) }
#endif
