// The runtime's side of a launch: the stubs that CANN's build would generate, a stream, and what tests set and read.
#include <stdexcept>

#include "ascend/host/submit.h"
#include "ascendc_on_host/machine.h"
#include "dspark_stubs.h"

// A stream that runs at once. The launch gets its own copy, as from torch_npu's queue.
void dspark::ascend::submit(const char* name, int32_t, std::function<uint32_t(Stream)> launch) {
  static char handle;
  const std::function<uint32_t(Stream)> queued = std::move(launch);
  try {
    if (const uint32_t error = queued({&handle, ascendc_on_host::kVectorCores}))
      throw std::runtime_error("error " + std::to_string(error));
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string(name) + ": " + error.what());
  }
}

namespace {
uint32_t forced_blocks = 0;
}

#define ASCENDC_HOST_STUB(stem, Params, rule)                                                                      \
  extern "C" void dspark_##stem(uint8_t* workspace, dspark::Params params);                                        \
  extern "C" uint32_t aclrtlaunch_dspark_##stem(uint32_t blocks, void*, void* workspace, dspark::Params* params) { \
    const dspark::Params by_value = *params;                                                                       \
    ascendc_on_host::launch(forced_blocks ? forced_blocks : blocks,                                                \
                            [=] { dspark_##stem(static_cast<uint8_t*>(workspace), by_value); });                   \
    return 0;                                                                                                      \
  }
DSPARK_ASCEND_OPERATORS(ASCENDC_HOST_STUB)

extern "C" {

// blocks 0: as the host side asks for.
__attribute__((visibility("default"))) void ascendc_on_host_options(uint32_t blocks, int poison,
                                                                    bool whole_blocks) {
  forced_blocks = blocks;
  ascendc_on_host::whole_blocks = whole_blocks;
  ascendc_on_host::poison = poison;
}
// Copies the counters since the last call and clears them.
__attribute__((visibility("default"))) void ascendc_on_host_counters(int64_t* values) {
  *reinterpret_cast<ascendc_on_host::Counters*>(values) = ascendc_on_host::totals;
  ascendc_on_host::totals = {};
}
}
