#include "ascend/max_safe_verify_len_kernel.h"

extern "C" __global__ __aicore__ void dspark_max_safe_verify_len(GM_ADDR, dspark::MaxSafeVerifyLenParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::max_safe_verify_len(params);
}
