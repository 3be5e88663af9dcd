// Every Ascend operator: one launch each. A launch puts one kernel on the stream and returns; the parameters travel by
// value with it, nothing is uploaded, and it never waits, so it may be captured into a graph. Free of torch.
#pragma once
#include <stddef.h>

#include "ascend/host/operators.h"

namespace dspark::ascend {

// Where a launch goes: a stream of a device with so many vector cores.
struct Stream {
  void* handle;
  uint32_t cores;
};

// uint32_t stem(const Params& p, void* workspace, Stream stream): 0, or the runtime's error.
#define DSPARK_DECLARE(stem, Params, blocks) uint32_t stem(const Params& p, void* workspace, Stream stream);
DSPARK_ASCEND_OPERATORS(DSPARK_DECLARE)
#undef DSPARK_DECLARE

// Bytes of device memory that a planning kernel needs while it runs; 0 where all keys fit the unified buffer.
size_t planning_workspace(int64_t batch, int64_t gamma);

// The same of any kernel. Only the planning ones need any.
template <class Params>
size_t workspace_of(const Params&) {
  return 0;
}
inline size_t workspace_of(const PlanBudgetParams& p) { return planning_workspace(p.rules.batch, p.rules.gamma); }
inline size_t workspace_of(const ScheduleParams& p) { return planning_workspace(p.rules.batch, p.rules.gamma); }
inline size_t workspace_of(const AllocateParams& p) { return planning_workspace(p.rules.batch, p.rules.gamma); }

}  // namespace dspark::ascend
