#include "ascend/allocate_verify_lens_kernel.h"

extern "C" __global__ __aicore__ void dspark_allocate_verify_lens(GM_ADDR workspace, dspark::AllocateParams params) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  dspark::ascend::allocate_verify_lens(params, (void*)(uintptr_t)workspace);
}
