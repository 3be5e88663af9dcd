#include "ascend/pad_to_bucket_kernel.h"

extern "C" __global__ __aicore__ void dspark_pad_to_bucket(GM_ADDR, dspark::PadToBucketParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::pad_to_bucket(params);
}
