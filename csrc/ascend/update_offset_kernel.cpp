#include "ascend/update_offset_kernel.h"

extern "C" __global__ __aicore__ void dspark_update_offset(GM_ADDR, dspark::UpdateOffsetParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::update_offset(params);
}
