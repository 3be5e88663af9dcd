// 1 / (1 + exp(-x)) within one unit in the last place, in float32 only: doubles run at a 64th of the rate on consumer
// parts, and expf alone is too coarse (its last bit is worth two of c's where exp(-x) is large). Every operation is
// exact or correctly rounded, so a CPU computes the same bits.
#pragma once
#include "common/order.h"
#include "cuda/device.cuh"

namespace dspark::cuda {

// exp(x) = (high + low) * 2^exponent for |x| <= 88, to about 2^-28.
struct Exponential {
  float high, low;
  int exponent;
};

__device__ __forceinline__ Exponential exponential(float x) {
  const float n = rintf(x * 1.44269504f);
  // ln 2 in two parts, of which the first times n is exact.
  const float r_high = __fmaf_rn(n, -0.693145752f, x);
  const float r_low = n * -1.42860677e-6f;
  const float r = r_high + r_low, r_error = (r_high - r) + r_low;
  // exp(r) = 1 + r + r^2 * p(r), |r| <= 0.35
  float p = 1.98412698e-4f;
  p = __fmaf_rn(p, r, 1.38888889e-3f);
  p = __fmaf_rn(p, r, 8.33333333e-3f);
  p = __fmaf_rn(p, r, 4.16666667e-2f);
  p = __fmaf_rn(p, r, 1.66666667e-1f);
  p = __fmaf_rn(p, r, 0.5f);
  const float high = 1.0f + r;
  const float low = __fmaf_rn(r * r, p, ((1.0f - high) + r) + r_error);
  return {high, low, int(n)};
}

// NaN gives 0; a result below 2^-100 is 0.
__device__ __forceinline__ float sigmoid(float x) {
  if (!(x == x)) return 0.0f;
  x = x > 75.0f ? 75.0f : x < -75.0f ? -75.0f : x;
  const Exponential e = exponential(-x);
  const float scale = bits_float(uint32_t(e.exponent + 127) << 23);
  // denominator = 1 + exp(-x) as high + low; the larger term comes first
  const float a = e.high * scale, b = e.low * scale;
  const float sum = 1.0f + a;
  const float rest = (a > 1.0f ? (a - sum) + 1.0f : (1.0f - sum) + a) + b;
  const float high = sum + rest, low = (sum - high) + rest;
  const float c = __frcp_rn(high);
  const float error = __fmaf_rn(-high, c, 1.0f) - low * c;
  const float result = __fmaf_rn(c, error, c);
  return result < 7.8886090522101181e-31f ? 0.0f : result;
}

}  // namespace dspark::cuda
