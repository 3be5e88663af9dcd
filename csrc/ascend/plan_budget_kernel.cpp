#include "ascend/plan_budget_kernel.h"

extern "C" __global__ __aicore__ void dspark_plan_budget(GM_ADDR workspace, dspark::PlanBudgetParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::plan_budget(params, (void*)(uintptr_t)workspace);
}
