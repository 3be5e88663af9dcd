// Registers the CPU operators under torch.ops.dspark (schemas: dspark_ops/ops/<stem>.py).
#include "common/bind_accept.h"
#include "common/bind_compressor.h"
#include "cpu/kernels.h"

#define DSPARK_CPU(stem) \
  m.impl(#stem, TORCH_BOX((&dspark::Operator<dspark::bind_##stem, dspark::cpu::stem>::call)))

STABLE_TORCH_LIBRARY_IMPL(dspark, CPU, m) {
  // planning

  // layout

  // compressor
  DSPARK_CPU(max_safe_verify_len);

  // acceptance
  DSPARK_CPU(accept_greedy);
  DSPARK_CPU(finalize_accept);
  DSPARK_CPU(update_offset);
}
