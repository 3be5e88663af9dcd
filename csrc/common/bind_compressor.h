// Dispatcher arguments -> parameters of the compressor operators.
#pragma once
#include "common/checks.h"

namespace dspark {

inline MaxSafeVerifyLenParams bind_max_safe_verify_len(const Tensor& start_pos, int64_t ratio, int64_t coff,
                                                       int64_t ring, int64_t max_verify_len, const Tensor& safe_lens) {
  const int64_t batch = start_pos.size(0);
  return {index_input(start_pos, "start_pos", batch), batch, integer(ratio, "ratio", 1, 1 << 20),
          integer(coff, "coff", 1, 16), integer(ring, "ring", 0, kMaxStepNs),
          integer(max_verify_len, "max_verify_len", 1, kMaxVerifyRows),
          output<int32_t>(safe_lens, "safe_lens", batch)};
}

}  // namespace dspark
