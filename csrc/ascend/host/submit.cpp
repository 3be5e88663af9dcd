// The current NPU stream, and torch_npu's queue of launches.
//
// A unit of its own: torch_npu's headers cannot be mixed with torch's stable ABI, in which the bindings are written.
// The queue keeps the order of launches and of torch_npu's own operators. Memory that the caller frees meanwhile is
// reused in the order of the stream only, so parameters that point to it stay good.
#include "ascend/host/submit.h"

#include <torch_npu/csrc/core/npu/NPUGuard.h>
#include <torch_npu/csrc/core/npu/NPUStream.h>
#include <torch_npu/csrc/core/npu/interface/AclInterface.h>
#include <torch_npu/csrc/framework/OpCommand.h>

namespace dspark::ascend {
namespace {

constexpr uint32_t kLeastCores = 40;  // vector cores of the smallest 910B, for a runtime too old to tell

uint32_t vector_cores(int32_t device) {
  int64_t cores = 0;
  const bool told = c10_npu::acl::IsExistAclrtGetDeviceInfo() &&
                    c10_npu::acl::AclrtGetDeviceInfo(uint32_t(device), ACL_DEV_ATTR_VECTOR_CORE_NUM, &cores) == 0;
  return told && cores > 0 ? uint32_t(cores) : kLeastCores;
}

}  // namespace

void submit(const char* name, int32_t device, std::function<uint32_t(Stream)> launch) {
  static const uint32_t cores = vector_cores(device);  // all NPUs of a machine are of one kind
  const c10_npu::NPUGuard guard{c10::DeviceIndex(device)};
  const Stream stream{c10_npu::getCurrentNPUStream(c10::DeviceIndex(device)).stream(false), cores};
  at_npu::native::OpCommand::RunOpApiV2(name, [=]() -> int { return int(launch(stream)); });
}

}  // namespace dspark::ascend
