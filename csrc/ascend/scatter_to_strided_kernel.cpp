#include "ascend/scatter_to_strided_kernel.h"

extern "C" __global__ __aicore__ void dspark_scatter_to_strided(GM_ADDR, dspark::MoveRowsParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::scatter_to_strided(params);
}
