#include "ascend/finalize_accept_kernel.h"

extern "C" __global__ __aicore__ void dspark_finalize_accept(GM_ADDR, dspark::AcceptParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::finalize_accept(params);
}
