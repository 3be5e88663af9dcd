// 1 / (1 + exp(-x)) within one unit in the last place, out of additions, multiplications and divisions only: the
// accuracy of the vector unit's own Exp is nowhere stated, and c must lie within 2 units of the reference.
//
// exp(-|x|) is kept as a sum of two floats, and so is 1 + exp(-|x|); one correction step after the division, with the
// product split into exact parts (there is no fused multiply-add to count on), makes up for both low parts.
// 72 vector instructions on the whole tile.
#pragma once
#include "ascend/device.h"

namespace dspark::ascend {

struct SigmoidScratch {
  Local<float> a, b, c, d, e, f, g, h, t;
};

// b + d = exp(a), d the larger part, for a in [-75, 0].
__aicore__ inline void exponential(const SigmoidScratch& s, uint32_t n) {
  const Local<int32_t> power = s.c.ReinterpretCast<int32_t>();
  multiply(s.b, s.a, 1.44269504f, n);
  to_int(power, s.b, AscendC::RoundMode::CAST_RINT, n);
  to_float(s.b, power, n);
  // a -= b ln 2, in two parts of which the first is exact
  multiply(s.d, s.b, -0.693145752f, n);
  add(s.a, s.a, s.d, n);
  multiply(s.d, s.b, -1.42860677e-6f, n);
  add(s.e, s.a, s.d, n);
  subtract(s.a, s.a, s.e, n);
  add(s.a, s.a, s.d, n);  // what e lacks
  // exp(e) = 1 + e + e^2 p(e)
  multiply(s.d, s.e, 1.98412698e-4f, n);
  add(s.d, s.d, 1.38888889e-3f, n);
  multiply(s.d, s.d, s.e, n);
  add(s.d, s.d, 8.33333333e-3f, n);
  multiply(s.d, s.d, s.e, n);
  add(s.d, s.d, 4.16666667e-2f, n);
  multiply(s.d, s.d, s.e, n);
  add(s.d, s.d, 1.66666667e-1f, n);
  multiply(s.d, s.d, s.e, n);
  add(s.d, s.d, 0.5f, n);
  multiply(s.f, s.e, s.e, n);
  multiply(s.d, s.f, s.d, n);
  add(s.f, s.e, 1.0f, n);
  multiply(s.b, s.f, -1.0f, n);
  add(s.b, s.b, 1.0f, n);
  add(s.b, s.b, s.e, n);
  add(s.b, s.b, s.a, n);
  add(s.b, s.b, s.d, n);
  add(s.d, s.f, s.b, n);
  subtract(s.f, s.f, s.d, n);
  add(s.b, s.f, s.b, n);
  // times 2^power
  add(power, power, int32_t(127), n);
  shift_left(power, power, int32_t(23), n);
  multiply(s.d, s.d, s.c, n);
  multiply(s.b, s.b, s.c, n);
}

// high + low = x with half the bits each; `low` holds what x is until it is overwritten.
__aicore__ inline void split(const Local<float>& high, const Local<float>& low, const Local<float>& x, uint32_t n) {
  multiply(high, x, 4097.0f, n);
  subtract(low, high, x, n);
  subtract(high, high, low, n);
  subtract(low, x, high, n);
}

// x = sigmoid(x); NaN gives 0, and so does a result below 2^-100. n is a multiple of 64.
__aicore__ inline void sigmoid(const Arena& arena, const Local<float>& x, const SigmoidScratch& s, uint32_t n) {
  in_order();
  AscendC::Compare(arena.mask(), x, x, AscendC::CMPMODE::EQ, n);
  select(x, arena.mask(), x, -75.0f, n);
  at_least(x, x, -75.0f, n);
  at_most(x, x, 75.0f, n);
  multiply(s.a, x, -1.0f, n);
  smaller(s.a, s.a, x, n);
  exponential(s, n);
  // e + a = 1 + exp(-|x|)
  add(s.e, s.d, 1.0f, n);
  multiply(s.a, s.e, -1.0f, n);
  add(s.a, s.a, 1.0f, n);
  add(s.a, s.a, s.d, n);
  add(s.a, s.a, s.b, n);
  // The numerator d + b is 1 for x >= 0.
  compare(arena.mask(), x, AscendC::CMPMODE::LT, 0.0f, n);
  select(s.d, arena.mask(), s.d, 1.0f, n);
  select(s.b, arena.mask(), s.b, 0.0f, n);
  divide(s.c, s.d, s.e, n);
  // d = (d - c e) + b - c a, then c += d / e
  split(s.f, x, s.c, n);
  split(s.g, s.h, s.e, n);
  multiply(s.t, s.f, s.g, n);
  subtract(s.d, s.d, s.t, n);
  multiply(s.t, s.f, s.h, n);
  subtract(s.d, s.d, s.t, n);
  multiply(s.t, x, s.g, n);
  subtract(s.d, s.d, s.t, n);
  multiply(s.t, x, s.h, n);
  subtract(s.d, s.d, s.t, n);
  multiply(s.t, s.c, s.a, n);
  add(s.d, s.d, s.b, n);
  subtract(s.d, s.d, s.t, n);
  divide(s.d, s.d, s.e, n);
  add(s.c, s.c, s.d, n);
  keep(arena, x, s.c, AscendC::CMPMODE::GE, kTiny, 0.0f, n);
}

}  // namespace dspark::ascend
