#include "ascend/ragged_layout_kernel.h"

extern "C" __global__ __aicore__ void dspark_ragged_layout(GM_ADDR, dspark::RaggedLayoutParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::ragged_layout(params);
}
