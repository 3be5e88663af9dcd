// Dispatcher arguments -> parameters of the compressor operators.
#pragma once
#include "common/checks.h"

namespace dspark {

inline MaxSafeVerifyLenParams bind_max_safe_verify_len(const Tensor& start_pos, int64_t ratio, int64_t coff,
                                                       int64_t ring, int64_t max_verify_len, const Tensor& safe_lens) {
  STD_TORCH_CHECK(ratio > 0 && coff > 0 && max_verify_len > 0, "ratio, coff and max_verify_len: must be positive");
  const int64_t batch = start_pos.numel();
  return {index_input(start_pos, "start_pos", batch), batch, ratio, coff, ring, max_verify_len,
          output<int32_t>(safe_lens, "safe_lens", batch)};
}

}  // namespace dspark
