// Half-precision confidences, widened exactly, in integer and normal-range float arithmetic only.
#pragma once
#include "common/params.h"

namespace dspark {

DSPARK_FN float widen_bf16(uint16_t x) { return bits_float(uint32_t(x) << 16); }

DSPARK_FN float widen_f16(uint16_t x) {
  const uint32_t sign = uint32_t(x & 0x8000u) << 16, exponent = (x >> 10) & 31u, mantissa = x & 0x3ffu;
  if (exponent == 0) return bits_float(sign | float_bits(float(mantissa) * 5.9604644775390625e-8f));  // 2^-24
  return bits_float(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | mantissa << 13);
}

DSPARK_FN float load_float(const void* values, Float dtype, int64_t i) {
  if (dtype == Float::f32) return static_cast<const float*>(values)[i];
  const uint16_t half = static_cast<const uint16_t*>(values)[i];
  return dtype == Float::bf16 ? widen_bf16(half) : widen_f16(half);
}

}  // namespace dspark
