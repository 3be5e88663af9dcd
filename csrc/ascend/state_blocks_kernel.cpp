#include "ascend/state_blocks_kernel.h"

extern "C" __global__ __aicore__ void dspark_state_blocks(GM_ADDR, dspark::StateBlocksParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::state_blocks(params);
}
