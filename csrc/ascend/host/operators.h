// Every Ascend operator, once. X(stem, parameters, blocks): `blocks` is a rule of launch.cpp, of the parameters and the
// number of vector cores. Kernel: dspark_<stem>(GM_ADDR workspace, parameters) in csrc/ascend/<stem>_kernel.cpp.
#pragma once
#include "common/params.h"

#define DSPARK_ASCEND_OPERATORS(X)                               \
  X(prefix_survival, SurvivalParams, survival_blocks)            \
  X(plan_budget, PlanBudgetParams, one_block)                    \
  X(schedule_verify_lens, ScheduleParams, one_block)             \
  X(allocate_verify_lens, AllocateParams, one_block)             \
  X(ragged_layout, RaggedLayoutParams, row_blocks)               \
  X(pad_to_bucket, PadToBucketParams, one_block)                 \
  X(compressor_layout, CompressorLayoutParams, entry_blocks)     \
  X(state_rows, StateRowsParams, request_blocks)                 \
  X(state_blocks, StateBlocksParams, request_blocks)             \
  X(scatter_to_strided, MoveRowsParams, scatter_blocks)          \
  X(gather_from_strided, MoveRowsParams, gather_blocks)          \
  X(max_safe_verify_len, MaxSafeVerifyLenParams, request_blocks) \
  X(accept_greedy, AcceptParams, request_blocks)                 \
  X(finalize_accept, AcceptParams, request_blocks)               \
  X(update_offset, UpdateOffsetParams, request_blocks)
