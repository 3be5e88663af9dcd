#include "ascend/compressor_layout_kernel.h"

extern "C" __global__ __aicore__ void dspark_compressor_layout(GM_ADDR, dspark::CompressorLayoutParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::compressor_layout(params);
}
