#include "ascend/accept_greedy_kernel.h"

extern "C" __global__ __aicore__ void dspark_accept_greedy(GM_ADDR, dspark::AcceptParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::accept_greedy(params);
}
