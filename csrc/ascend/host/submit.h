// How a launch reaches a stream: the one thing that depends on torch_npu (submit.cpp), or on the emulation.
#pragma once
#include <cstdint>
#include <functional>

#include "ascend/host/launch.h"

namespace dspark::ascend {

// Runs launch(stream) with the current stream of this NPU; the launch returns 0 or the runtime's error. It may run
// later, on another thread, in the order of the calls.
void submit(const char* name, int32_t device, std::function<uint32_t(Stream)> launch);

}  // namespace dspark::ascend
