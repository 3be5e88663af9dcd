// The runtime's side of a launch: the stubs that CANN's build would generate, a stream, and what tests set and read.
#include <stdexcept>

#include "aclrtlaunch_dspark_allocate_verify_lens.h"
#include "aclrtlaunch_dspark_plan_budget.h"
#include "aclrtlaunch_dspark_prefix_survival.h"
#include "aclrtlaunch_dspark_schedule_verify_lens.h"
#include "ascend/host/submit.h"
#include "ascendc_on_host/machine.h"

extern "C" {

void dspark_prefix_survival(dspark::SurvivalParams);
void dspark_plan_budget(uint8_t*, dspark::PlanBudgetParams);
void dspark_schedule_verify_lens(uint8_t*, dspark::ScheduleParams);
void dspark_allocate_verify_lens(uint8_t*, dspark::AllocateParams);
}

// A stream that runs at once. The launch gets its own copy, as from torch_npu's queue.
void dspark::ascend::submit(const char* name, int32_t, std::function<uint32_t(void*)> launch) {
  static char stream;
  const std::function<uint32_t(void*)> queued = std::move(launch);
  try {
    if (const uint32_t error = queued(&stream)) throw std::runtime_error("error " + std::to_string(error));
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string(name) + ": " + error.what());
  }
}

namespace {

uint32_t forced_blocks = 0;

template <class P>
uint32_t launch_planning(void (*kernel)(uint8_t*, P), uint32_t blocks, void* workspace, const P* params) {
  const P by_value = *params;
  ascendc_on_host::launch(forced_blocks ? forced_blocks : blocks,
                          [=] { kernel(static_cast<uint8_t*>(workspace), by_value); });
  return 0;
}

}  // namespace

extern "C" {

uint32_t aclrtlaunch_dspark_prefix_survival(uint32_t blocks, void*, dspark::SurvivalParams* params) {
  const dspark::SurvivalParams by_value = *params;
  ascendc_on_host::launch(forced_blocks ? forced_blocks : blocks, [=] { dspark_prefix_survival(by_value); });
  return 0;
}
uint32_t aclrtlaunch_dspark_plan_budget(uint32_t blocks, void*, void* workspace, dspark::PlanBudgetParams* params) {
  return launch_planning(dspark_plan_budget, blocks, workspace, params);
}
uint32_t aclrtlaunch_dspark_schedule_verify_lens(uint32_t blocks, void*, void* workspace,
                                                 dspark::ScheduleParams* params) {
  return launch_planning(dspark_schedule_verify_lens, blocks, workspace, params);
}
uint32_t aclrtlaunch_dspark_allocate_verify_lens(uint32_t blocks, void*, void* workspace,
                                                 dspark::AllocateParams* params) {
  return launch_planning(dspark_allocate_verify_lens, blocks, workspace, params);
}

// blocks 0: as the host side asks for.
__attribute__((visibility("default"))) void ascendc_on_host_options(uint32_t blocks, int poison) {
  forced_blocks = blocks;
  ascendc_on_host::poison = poison;
}
// Copies the counters since the last call and clears them.
__attribute__((visibility("default"))) void ascendc_on_host_counters(int64_t* values) {
  *reinterpret_cast<ascendc_on_host::Counters*>(values) = ascendc_on_host::totals;
  ascendc_on_host::totals = {};
}
}
