// Every CPU operator: one function each, defined in csrc/cpu/<stem>.cpp.
#pragma once
#include "common/params.h"

namespace dspark::cpu {

// planning
void prefix_survival(const SurvivalParams& p);
void plan_budget(const PlanBudgetParams& p);
void schedule_verify_lens(const ScheduleParams& p);
void allocate_verify_lens(const AllocateParams& p);

// layout
void gather_from_strided(const MoveRowsParams& p);
void pad_to_bucket(const PadToBucketParams& p);
void ragged_layout(const RaggedLayoutParams& p);
void scatter_to_strided(const MoveRowsParams& p);

// compressor
void compressor_layout(const CompressorLayoutParams& p);
void max_safe_verify_len(const MaxSafeVerifyLenParams& p);
void state_blocks(const StateBlocksParams& p);
void state_rows(const StateRowsParams& p);

// acceptance
void accept_greedy(const AcceptParams& p);
void finalize_accept(const AcceptParams& p);
void update_offset(const UpdateOffsetParams& p);

}  // namespace dspark::cpu
