// Registers the CPU operators under torch.ops.dspark (schemas: dspark_ops/ops/<stem>.py).
#include "common/bind_accept.h"
#include "common/bind_compressor.h"
#include "common/bind_layout.h"
#include "common/bind_planning.h"
#include "cpu/kernels.h"

#define DSPARK_CPU(stem) \
  m.impl(#stem, TORCH_BOX((&dspark::Operator<dspark::bind_##stem, dspark::cpu::stem>::call)))

STABLE_TORCH_LIBRARY_IMPL(dspark, CPU, m) {
  // planning
  DSPARK_CPU(prefix_survival);
  DSPARK_CPU(plan_budget);
  DSPARK_CPU(schedule_verify_lens);
  DSPARK_CPU(allocate_verify_lens);

  // layout
  DSPARK_CPU(gather_from_strided);
  DSPARK_CPU(pad_to_bucket);
  DSPARK_CPU(ragged_layout);
  DSPARK_CPU(scatter_to_strided);

  // compressor
  DSPARK_CPU(compressor_layout);
  DSPARK_CPU(max_safe_verify_len);
  DSPARK_CPU(state_blocks);
  DSPARK_CPU(state_rows);

  // acceptance
  DSPARK_CPU(accept_greedy);
  DSPARK_CPU(finalize_accept);
  DSPARK_CPU(update_offset);
}
