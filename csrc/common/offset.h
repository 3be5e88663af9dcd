// The one definition of how an offset learns. Compile without contraction: a fused multiply-add changes the bits.
#pragma once
#include "common/order.h"

namespace dspark {

// The offset after a step that verified verify_len >= 1 rows and accepted `correct` drafts. confidence: [G]
DSPARK_FN float next_offset(float offset, const float* confidence, int64_t correct, int64_t verify_len, float decay,
                            float eta, float limit) {
  const int64_t observed = min64(correct + 1, verify_len - 1);
  float error = 0.0f;
  for (int64_t k = 0; k < observed; ++k) error += (k < correct ? 1.0f : 0.0f) - unit_interval(confidence[k]);
  float next = decay * offset;
  if (next != next) next = 0.0f;  // a NaN offset, or 0 times an infinite one
  next += eta * error;
  return next > limit ? limit : next < -limit ? -limit : next;
}

}  // namespace dspark
