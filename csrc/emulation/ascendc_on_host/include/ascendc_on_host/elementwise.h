// Element by element: arithmetic, shifts, Duplicate, CreateVecIndex, Cast.
//
// Counts may be any number; the repeats are what the hardware needs for it at 256 bytes each. Types that the vector
// unit lacks are faults, and so are operands that overlap without being the same.
#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "ascendc_on_host/tensors.h"

namespace AscendC {

template <class T, class... Allowed>
void require_type(const char* name) {
  if (!(std::is_same_v<T, Allowed> || ...)) host::fault("%s: the vector unit has no such type for it", name);
}

inline uint64_t repeats_of(uint64_t count, uint64_t bytes) {
  return (count * bytes + host::kRepeat - 1) / host::kRepeat;
}

inline void require_apart(const char* name, const host::Access& dst, const host::Access& src) {
  if (dst.offset != src.offset && dst.offset < src.offset + src.bytes && src.offset < dst.offset + dst.bytes)
    host::fault("%s: destination and source overlap in part", name);
}

// int32 wraps; signed overflow would be undefined here.
template <class T, class F>
T apply(F f, T a, T b) {
  if constexpr (std::is_same_v<T, int32_t>) return T(f(int64_t(a), int64_t(b)));
  else return f(a, b);
}

template <class T, class F>
void binary(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b,
            int32_t count, F f) {
  const host::Access d = dst.operand(name, count, true), x = a.operand(name, count, false),
                     y = b.operand(name, count, false);
  require_apart(name, d, x);
  require_apart(name, d, y);
  host::core().issue_vector(name, repeats_of(count, sizeof(T)), {x, y, d});
  T *const to = dst.data(), *const p = a.data(), *const q = b.data();
  for (int32_t i = 0; i < count; ++i) to[i] = apply<T>(f, p[i], q[i]);
}

template <class T, class U, class F>
void unary(const char* name, const LocalTensor<T>& dst, const LocalTensor<U>& src, int32_t count, F f) {
  const host::Access d = dst.operand(name, count, true), x = src.operand(name, count, false);
  require_apart(name, d, x);
  host::core().issue_vector(name, repeats_of(count, std::max(sizeof(T), sizeof(U))), {x, d});
  if (dst.offset() == src.offset() && sizeof(T) > sizeof(U)) host::fault("%s: widens in place", name);
  T* const to = dst.data();
  U* const from = src.data();
  for (int32_t i = 0; i < count; ++i) to[i] = f(from[i]);
}

#define ASCENDC_HOST_BINARY(name, scalar_name, expression)                                                  \
  template <class T>                                                                                        \
  void name(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, int32_t count) {   \
    require_type<T, float, int32_t>(#name);                                                                 \
    binary(#name, dst, a, b, count, [](auto x, auto y) { return expression; });                             \
  }                                                                                                         \
  template <class T>                                                                                        \
  void scalar_name(const LocalTensor<T>& dst, const LocalTensor<T>& a, T scalar, int32_t count) {           \
    require_type<T, float, int32_t>(#scalar_name);                                                          \
    const auto f = [](auto x, auto y) { return expression; };                                               \
    unary(#scalar_name, dst, a, count, [&](T value) { return apply<T>(f, value, scalar); });                \
  }
ASCENDC_HOST_BINARY(Add, Adds, x + y)
ASCENDC_HOST_BINARY(Mul, Muls, x * y)
ASCENDC_HOST_BINARY(Max, Maxs, x > y ? x : y)
ASCENDC_HOST_BINARY(Min, Mins, x < y ? x : y)
#undef ASCENDC_HOST_BINARY

template <class T>
void Sub(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, int32_t count) {
  require_type<T, float, int32_t>("Sub");
  binary("Sub", dst, a, b, count, [](auto x, auto y) { return x - y; });
}
template <class T>
void Div(const LocalTensor<T>& dst, const LocalTensor<T>& a, const LocalTensor<T>& b, int32_t count) {
  require_type<T, float>("Div");
  binary("Div", dst, a, b, count, [](auto x, auto y) { return x / y; });
}

template <class T>
void ShiftLeft(const LocalTensor<T>& dst, const LocalTensor<T>& src, T by, int32_t count) {
  require_type<T, int32_t, uint32_t>("ShiftLeft");
  unary("ShiftLeft", dst, src, count, [by](T v) { return T(uint32_t(v) << by); });
}
template <class T>
void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, T by, int32_t count) {
  require_type<T, int32_t, uint32_t>("ShiftRight");
  unary("ShiftRight", dst, src, count, [by](T v) { return T(v >> by); });
}

template <class T>
void Duplicate(const LocalTensor<T>& dst, T value, int32_t count) {
  require_type<T, float, int32_t, uint32_t, int16_t, uint16_t, half, bfloat16_t>("Duplicate");
  host::core().issue_vector("Duplicate", repeats_of(count, sizeof(T)), {dst.operand("Duplicate", count, true)});
  std::fill_n(dst.data(), count, value);
}
// The scalar unit writes the first block, then the vector unit goes on from it, with a flag between. So vector
// instructions, too, must be done with that block: a barrier of the vector pipe is not enough.
template <class T>
void CreateVecIndex(LocalTensor<T> dst, T first, uint32_t count) {
  require_type<T, float, int32_t, int16_t>("CreateVecIndex");
  const host::Access d = dst.operand("CreateVecIndex", count, true);
  host::core().issue(host::kScalar, "CreateVecIndex", {{d.offset, std::min(d.bytes, host::kBlock), true}});
  const int event = host::core().fetch_event(host::kScalar, host::kVector);
  host::core().set_flag(host::kScalar, host::kVector, event);
  host::core().wait_flag(host::kScalar, host::kVector, event);
  host::core().issue_vector("CreateVecIndex", repeats_of(count, sizeof(T)), {d});
  for (uint32_t i = 0; i < count; ++i) dst.data()[i] = T(first + T(i));
}

inline float widen(half x) {
  const uint32_t sign = uint32_t(x.bits & 0x8000u) << 16, exponent = x.bits >> 10 & 31u, mantissa = x.bits & 0x3ffu;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * std::ldexp(float(mantissa), -24);
  const uint32_t bits = sign | (exponent == 31 ? 0xffu : exponent + 112) << 23 | mantissa << 13;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline float widen(bfloat16_t x) {
  const uint32_t bits = uint32_t(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
T round_to(float x, RoundMode mode) {
  const double r = mode == RoundMode::CAST_FLOOR   ? std::floor(double(x))
                   : mode == RoundMode::CAST_CEIL  ? std::ceil(double(x))
                   : mode == RoundMode::CAST_TRUNC ? std::trunc(double(x))
                   : mode == RoundMode::CAST_ROUND ? std::round(double(x))
                                                   : std::nearbyint(double(x));
  if constexpr (std::is_same_v<T, float>) return float(r);
  if (!(r == r)) return 0;
  constexpr double low = double(std::numeric_limits<T>::min()), high = -low;
  return r < low ? std::numeric_limits<T>::min() : r >= high ? std::numeric_limits<T>::max() : T(r);
}

template <class T, class U>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, RoundMode mode, uint32_t count) {
  constexpr bool widens = std::is_same_v<T, float> && (std::is_same_v<U, half> || std::is_same_v<U, bfloat16_t>);
  constexpr bool rounds = std::is_same_v<U, float> &&
                          (std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> || std::is_same_v<T, float>);
  constexpr bool floats = std::is_same_v<T, float> && (std::is_same_v<U, int32_t> || std::is_same_v<U, int64_t>);
  constexpr bool resizes = (std::is_same_v<T, int32_t> && std::is_same_v<U, int64_t>) ||
                           (std::is_same_v<T, int64_t> && std::is_same_v<U, int32_t>);
  if constexpr (widens) {
    unary("Cast", dst, src, count, [](U x) { return widen(x); });
  } else if constexpr (rounds) {
    if (mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_ODD) host::fault("Cast: needs a rounding mode");
    unary("Cast", dst, src, count, [mode](float x) { return round_to<T>(x, mode); });
  } else if constexpr (floats) {
    unary("Cast", dst, src, count, [](U x) { return float(x); });
  } else if constexpr (resizes) {
    unary("Cast", dst, src, count, [](U x) {
      return U(T(x)) == x ? T(x) : x < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    });
  } else {
    host::fault("Cast: the vector unit has no such conversion");
  }
}

}  // namespace AscendC
