// Every Ascend operator: one launch each. A launch puts one kernel on the stream and returns; the parameters travel by
// value with it, nothing is uploaded, and it never waits, so it may be captured into a graph. Free of torch.
#pragma once
#include <stddef.h>

#include "common/params.h"

namespace dspark::ascend {

// Bytes of device memory that a planning kernel needs while it runs; 0 where all keys fit the unified buffer.
size_t planning_workspace(int64_t batch, int64_t gamma);

// Returns 0, or the runtime's error.
uint32_t prefix_survival(const SurvivalParams& p, void* workspace, void* stream);
uint32_t plan_budget(const PlanBudgetParams& p, void* workspace, void* stream);
uint32_t schedule_verify_lens(const ScheduleParams& p, void* workspace, void* stream);
uint32_t allocate_verify_lens(const AllocateParams& p, void* workspace, void* stream);

}  // namespace dspark::ascend
