// Every CUDA operator: one launcher each, defined in csrc/cuda/<stem>.cu. A launcher issues its kernels on the stream
// and returns; it allocates nothing and never waits, so it may be captured into a graph. Free of torch.
#pragma once
#include <cuda_runtime.h>

#include "common/params.h"

namespace dspark::cuda {

// Bytes of device memory that a planning launcher needs while it runs; 0 where one block does it all.
size_t planning_workspace(int64_t batch, int64_t gamma);

// planning
cudaError_t prefix_survival(const SurvivalParams& p, cudaStream_t stream);
cudaError_t plan_budget(const PlanBudgetParams& p, void* workspace, cudaStream_t stream);
cudaError_t schedule_verify_lens(const ScheduleParams& p, void* workspace, cudaStream_t stream);
cudaError_t allocate_verify_lens(const AllocateParams& p, void* workspace, cudaStream_t stream);

// layout
cudaError_t gather_from_strided(const MoveRowsParams& p, cudaStream_t stream);
cudaError_t pad_to_bucket(const PadToBucketParams& p, cudaStream_t stream);
cudaError_t ragged_layout(const RaggedLayoutParams& p, cudaStream_t stream);
cudaError_t scatter_to_strided(const MoveRowsParams& p, cudaStream_t stream);

// compressor
cudaError_t compressor_layout(const CompressorLayoutParams& p, cudaStream_t stream);
cudaError_t max_safe_verify_len(const MaxSafeVerifyLenParams& p, cudaStream_t stream);
cudaError_t state_blocks(const StateBlocksParams& p, cudaStream_t stream);
cudaError_t state_rows(const StateRowsParams& p, cudaStream_t stream);

// acceptance
cudaError_t accept_greedy(const AcceptParams& p, cudaStream_t stream);
cudaError_t finalize_accept(const AcceptParams& p, cudaStream_t stream);
cudaError_t update_offset(const UpdateOffsetParams& p, cudaStream_t stream);

}  // namespace dspark::cuda
