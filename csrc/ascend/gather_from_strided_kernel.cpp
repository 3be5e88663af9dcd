#include "ascend/gather_from_strided_kernel.h"

extern "C" __global__ __aicore__ void dspark_gather_from_strided(GM_ADDR, dspark::MoveRowsParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::gather_from_strided(params);
}
