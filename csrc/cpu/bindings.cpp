// Registers the CPU operators under torch.ops.dspark (schemas: dspark_ops/ops/<stem>.py).
#include "common/bind_accept.h"
#include "common/bind_compressor.h"
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

  // compressor
  DSPARK_CPU(max_safe_verify_len);

  // acceptance
  DSPARK_CPU(accept_greedy);
  DSPARK_CPU(finalize_accept);
  DSPARK_CPU(update_offset);
}
