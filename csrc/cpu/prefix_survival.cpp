#include <cmath>

#include "common/convert.h"
#include "cpu/kernels.h"

namespace dspark::cpu {
namespace {

// c = sigmoid(x) within 1.5 ulp of exact: expf is good to half an ulp, the rest is done in double. NaN stays NaN.
float sigmoid(float x) {
  const float c = float(1.0 / (1.0 + double(std::exp(-x))));
  return c < 7.8886090522101181e-31f ? 0.0f : c;
}

bool is_fresh(const Freshness& f, int64_t r, int64_t row) {
  if (f.fresh && !f.fresh[r]) return false;
  return !f.generation || (f.generation[row] == f.expected[r] && f.expected[r] >= 1);
}

void constant_row(const SurvivalParams& p, int64_t r, float value) {
  for (int64_t i = r * p.gamma; i < (r + 1) * p.gamma; ++i) {
    p.survival[i] = value;
    if (p.calibrated) p.calibrated[i] = value;
  }
}

template <class Load>
void product_row(const SurvivalParams& p, int64_t r, Load confidence) {
  float prefix = 1.0f;
  float* survival = p.survival + r * p.gamma;
  float* calibrated = p.calibrated ? p.calibrated + r * p.gamma : nullptr;
  for (int64_t k = 0; k < p.gamma; ++k) {
    const float c = unit_interval(confidence(k));
    if (calibrated) calibrated[k] = c;
    survival[k] = prefix = survival_step(prefix, c);
  }
}

}  // namespace

void prefix_survival(const SurvivalParams& p) {
  const Confidence& in = p.confidence;
  for (int64_t r = 0; r < p.batch; ++r) {
    const int64_t row = in.slots ? in.slots[r] : r;
    const bool inside = row >= 0 && row < in.rows;
    if (p.freshness.optimistic && !(inside && is_fresh(p.freshness, r, row))) {
      constant_row(p, r, 1.0f);
    } else if (!inside) {
      constant_row(p, r, 0.0f);
    } else if (in.is_logits) {
      const int64_t slot = in.offset_slots ? in.offset_slots[r] : r;
      const bool has_offset = in.offset && slot >= 0 && slot < in.offset_rows;
      product_row(p, r, [&](int64_t k) {
        float x = load_float(in.values, in.dtype, row * p.gamma + k);
        if (in.scale) x = in.scale[k] * x;
        if (in.bias) x = x + in.bias[k];
        return sigmoid(has_offset ? x + in.offset[slot] : x);
      });
    } else if (in.dtype == Float::f32) {
      const float* values = static_cast<const float*>(in.values) + row * p.gamma;
      product_row(p, r, [&](int64_t k) { return values[k]; });
    } else {
      product_row(p, r, [&](int64_t k) { return load_float(in.values, in.dtype, row * p.gamma + k); });
    }
  }
}

}  // namespace dspark::cpu
