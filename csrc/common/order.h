// The one definition of the plan's arithmetic: candidates, their order, Q43 sums, exact ratios.
// Plain C++ without std or torch, so that CPU, CUDA and AscendC sources all include this very file.
#pragma once
#include <stdint.h>

#if defined(__CUDACC__)
#define DSPARK_FN __host__ __device__ __forceinline__
#elif defined(__CCE_AICORE__)
#define DSPARK_FN __aicore__ inline
#else
#define DSPARK_FN inline
#endif

namespace dspark {

constexpr int kQBits = 43;
constexpr int64_t kQOne = int64_t(1) << kQBits;      // survival 1.0
constexpr int64_t kMaxStepNs = 0x7fffffff;           // T is clamped into [1, 2^31 - 1]
constexpr uint32_t kKeyBase = 0x35800000u - 1;       // bits of 2^-20, less one: every candidate key is >= 1
constexpr int kKeyBits = 28;                         // bits(1.0f) - kKeyBase < 2^28
constexpr int64_t kMaxVerifyRows = int64_t(1) << 18; // limit on B * N

DSPARK_FN int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
DSPARK_FN int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
DSPARK_FN int64_t clamp64(int64_t x, int64_t lo, int64_t hi) { return max64(lo, min64(x, hi)); }

DSPARK_FN uint32_t float_bits(float x) {
  union { float f; uint32_t u; } v;
  v.f = x;
  return v.u;
}
DSPARK_FN float bits_float(uint32_t x) {
  union { uint32_t u; float f; } v;
  v.u = x;
  return v.f;
}

// A probability as every operator reads it: NaN is 0, the rest is clamped to [0, 1] (and -0 becomes +0).
DSPARK_FN float unit_interval(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// One step of the left-to-right survival product. Products below 2^-100 become +0, so a flush-to-zero mode cannot matter.
DSPARK_FN float survival_step(float prefix, float confidence) {
  const float p = prefix * confidence;
  return p < 7.8886090522101181e-31f ? 0.0f : p;
}

// Sort key of a survival >= eps >= 2^-20. Keys order as survivals do; 0 is free to mean "no candidate".
// The order of candidates is: key descending, then k ascending, then r ascending.
DSPARK_FN uint32_t survival_key(float s) { return float_bits(s) - kKeyBase; }
DSPARK_FN float key_survival(uint32_t key) { return bits_float(key + kKeyBase); }

// floor(s * 2^43) for s in [0, 1]; the scaling is exact, and so is the whole for s >= 2^-20.
DSPARK_FN int64_t q43(float s) { return int64_t(s * 8796093022208.0f); }

// cap_r and floor_r of a request: the most rows it may verify, and the rows it always verifies.
DSPARK_FN int32_t row_cap(const int32_t* caps, int64_t r, int32_t max_verify_len) {
  return caps ? int32_t(clamp64(caps[r], 0, max_verify_len)) : max_verify_len;
}
DSPARK_FN int32_t row_floor(int32_t min_verify_len, int32_t cap) {
  const int32_t floor = min_verify_len > 1 ? min_verify_len : 1;
  return floor < cap ? floor : cap;
}

// T(rows) = base + step_ns[rows]; the index is clamped into the row, the time into [1, 2^31 - 1].
DSPARK_FN int64_t step_time_ns(const int32_t* step_ns, int64_t length, int64_t base, int64_t rows) {
  const int64_t bound = int64_t(1) << 33;
  return clamp64(clamp64(base, -bound, bound) + step_ns[clamp64(rows, 0, length - 1)], 1, kMaxStepNs);
}

// An exact product of tau < 2^62 and T < 2^31: hi * 2^32 + lo.
struct U96 {
  uint64_t hi;
  uint32_t lo;
};
DSPARK_FN U96 mul96(int64_t tau, int64_t t) {
  const uint64_t low = (uint64_t(tau) & 0xffffffffu) * uint64_t(t);
  return {(uint64_t(tau) >> 32) * uint64_t(t) + (low >> 32), uint32_t(low)};
}
DSPARK_FN bool greater96(U96 a, U96 b) { return a.hi != b.hi ? a.hi > b.hi : a.lo > b.lo; }

// tau_a / t_a > tau_b / t_b, exactly.
DSPARK_FN bool ratio_greater(int64_t tau_a, int64_t t_a, int64_t tau_b, int64_t t_b) {
  return greater96(mul96(tau_a, t_b), mul96(tau_b, t_a));
}

// (tau_a / t_a) * 10^6 > (tau_b / t_b) * (10^6 + ppm), exactly; ppm <= 10^6. Products reach 114 bits: four 32-bit limbs.
DSPARK_FN bool gain_exceeds(int64_t tau_a, int64_t t_a, int64_t tau_b, int64_t t_b, int64_t ppm) {
  const U96 product[2] = {mul96(tau_a, t_b), mul96(tau_b, t_a)};
  const uint64_t factor[2] = {1000000u, uint64_t(1000000 + ppm)};
  uint64_t limb[2][4];
  for (int i = 0; i < 2; ++i) {
    uint64_t carry = uint64_t(product[i].lo) * factor[i];
    limb[i][0] = carry & 0xffffffffu;
    carry = (carry >> 32) + (product[i].hi & 0xffffffffu) * factor[i];
    limb[i][1] = carry & 0xffffffffu;
    carry = (carry >> 32) + (product[i].hi >> 32) * factor[i];
    limb[i][2] = carry & 0xffffffffu;
    limb[i][3] = carry >> 32;
  }
  for (int j = 3; j > 0; --j)
    if (limb[0][j] != limb[1][j]) return limb[0][j] > limb[1][j];
  return limb[0][0] > limb[1][0];
}

// Algorithm 1 stops at the first b whose ratio does not rise: q_b * T(b-1) <= tau(b-1) * (T(b) - T(b-1)).
DSPARK_FN bool first_drop_stops(int64_t q, int64_t tau_before, int64_t t_before, int64_t t_after) {
  return t_after > t_before && !greater96(mul96(q, t_before), mul96(tau_before, t_after - t_before));
}

// Sums of lengths saturate at 2^31 - 1 (associative for non-negative terms): a bad length gives a defined result.
DSPARK_FN int32_t saturate32(int64_t x) { return int32_t(clamp64(x, 0, 0x7fffffff)); }

}  // namespace dspark
