// The current NPU stream, and torch_npu's queue of launches.
//
// A unit of its own: torch_npu's headers cannot be mixed with torch's stable ABI, in which the bindings are written.
// The queue keeps the order of launches and of torch_npu's own operators. Memory that the caller frees meanwhile is
// reused in the order of the stream only, so parameters that point to it stay good.
#include "ascend/host/submit.h"

#include <torch_npu/csrc/core/npu/NPUGuard.h>
#include <torch_npu/csrc/core/npu/NPUStream.h>
#include <torch_npu/csrc/framework/OpCommand.h>

namespace dspark::ascend {

void submit(const char* name, int32_t device, std::function<uint32_t(void* stream)> launch) {
  const c10_npu::NPUGuard guard{c10::DeviceIndex(device)};
  void* const stream = c10_npu::getCurrentNPUStream(c10::DeviceIndex(device)).stream(false);
  at_npu::native::OpCommand::RunOpApiV2(name, [=]() -> int { return int(launch(stream)); });
}

}  // namespace dspark::ascend
