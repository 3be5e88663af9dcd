// Launches through the stubs that `ascendc_library` generates: they copy a by-value parameter from where the pointer
// points before they return.
#include "ascend/host/launch.h"

#include "aclrtlaunch_dspark_allocate_verify_lens.h"
#include "aclrtlaunch_dspark_plan_budget.h"
#include "aclrtlaunch_dspark_prefix_survival.h"
#include "aclrtlaunch_dspark_schedule_verify_lens.h"

namespace dspark::ascend {
namespace {
constexpr int64_t kResidentKeys = 3584, kLanes = 64;  // device.h: kSlot, kLanes
constexpr int64_t kMostBlocks = 40;                   // vector cores of the smallest 910B
}  // namespace

size_t planning_workspace(int64_t batch, int64_t gamma) {
  const int64_t keys = (batch + kLanes - 1) / kLanes * kLanes * gamma;
  return keys <= kResidentKeys ? 0 : size_t(keys) * sizeof(float);
}

uint32_t prefix_survival(const SurvivalParams& p, void*, void* stream) {
  SurvivalParams params = p;
  const int64_t blocks = clamp64((p.batch + kLanes - 1) / kLanes, 1, kMostBlocks);
  return aclrtlaunch_dspark_prefix_survival(uint32_t(blocks), stream, &params);
}
uint32_t plan_budget(const PlanBudgetParams& p, void* workspace, void* stream) {
  PlanBudgetParams params = p;
  return aclrtlaunch_dspark_plan_budget(1, stream, workspace, &params);
}
uint32_t schedule_verify_lens(const ScheduleParams& p, void* workspace, void* stream) {
  ScheduleParams params = p;
  return aclrtlaunch_dspark_schedule_verify_lens(1, stream, workspace, &params);
}
uint32_t allocate_verify_lens(const AllocateParams& p, void* workspace, void* stream) {
  AllocateParams params = p;
  return aclrtlaunch_dspark_allocate_verify_lens(1, stream, workspace, &params);
}

}  // namespace dspark::ascend
