#pragma once
#include "common/params.h"

extern "C" uint32_t aclrtlaunch_dspark_plan_budget(uint32_t blocks, void* stream, void* workspace, dspark::PlanBudgetParams* params);
