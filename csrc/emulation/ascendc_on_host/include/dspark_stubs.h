// The stubs that CANN's build would declare in a header of its own for each kernel.
#pragma once
#include "ascend/host/operators.h"

#define ASCENDC_HOST_DECLARE(stem, Params, blocks) \
  extern "C" uint32_t aclrtlaunch_dspark_##stem(uint32_t blocks, void* stream, void* workspace, dspark::Params* params);
DSPARK_ASCEND_OPERATORS(ASCENDC_HOST_DECLARE)
#undef ASCENDC_HOST_DECLARE
