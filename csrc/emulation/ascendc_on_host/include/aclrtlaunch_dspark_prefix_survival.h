#pragma once
#include "common/params.h"

extern "C" uint32_t aclrtlaunch_dspark_prefix_survival(uint32_t blocks, void* stream, dspark::SurvivalParams* params);
