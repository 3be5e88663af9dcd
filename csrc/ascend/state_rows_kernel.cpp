#include "ascend/state_rows_kernel.h"

extern "C" __global__ __aicore__ void dspark_state_rows(GM_ADDR, dspark::StateRowsParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::state_rows(params);
}
