#include "ascend/prefix_survival_kernel.h"

extern "C" __global__ __aicore__ void dspark_prefix_survival(GM_ADDR, dspark::SurvivalParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::prefix_survival(params);
}
