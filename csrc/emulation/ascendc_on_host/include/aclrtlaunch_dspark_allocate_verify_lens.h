#pragma once
#include "common/params.h"

extern "C" uint32_t aclrtlaunch_dspark_allocate_verify_lens(uint32_t blocks, void* stream, void* workspace, dspark::AllocateParams* params);
