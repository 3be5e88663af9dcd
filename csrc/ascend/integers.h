// int32 arithmetic of the layout and compressor kernels.
//
// The vector unit orders floats only, selects floats only, and what int32 does on overflow is not documented. So a
// condition is a difference clamped to 0 and 1, a choice is a product with it, and every caller keeps its values where
// nothing overflows that counts. What no step has (sums near 2^31, 64-bit page ids) goes to the scalar unit instead.
// Counts are exact: no instruction here needs whole repeats.
#pragma once
#include "ascend/device.h"

namespace dspark::ascend {

constexpr int32_t kInt32Max = 0x7fffffff;
using Ints = Local<int32_t>;

// 1 where x > 0, else 0.
__aicore__ inline void is_positive(const Ints& to, const Ints& x, uint32_t n) {
  at_least(to, x, int32_t(0), n);
  at_most(to, to, int32_t(1), n);
}

// 1 where x >= 0, else 0; x < 2^31 - 1.
__aicore__ inline void is_natural(const Ints& to, const Ints& x, uint32_t n) {
  add(to, x, int32_t(1), n);
  is_positive(to, to, n);
}

// x where `on` is 1, `otherwise` where it is 0. Overwrites `on`.
__aicore__ inline void choose(const Ints& to, const Ints& x, const Ints& on, int32_t otherwise, uint32_t n) {
  multiply(to, x, on, n);
  if (otherwise == 0) return;
  multiply(on, on, int32_t(-1), n);
  add(on, on, int32_t(1), n);
  multiply(on, on, otherwise, n);
  add(to, to, on, n);
}

// a + b, at most 2^31 - 1, for a of either sign and b >= 0. `to` is neither.
__aicore__ inline void add_saturated(const Ints& to, const Ints& a, const Ints& b, uint32_t n) {
  at_least(to, a, int32_t(0), n);
  multiply(to, to, int32_t(-1), n);
  add(to, to, kInt32Max, n);
  smaller(to, to, b, n);
  add(to, to, a, n);
}

// The largest |x|, as a float. Overwrites both floats.
__aicore__ inline float magnitude(const Arena& arena, const Ints& x, const Local<float>& a, const Local<float>& b,
                                  uint32_t n) {
  to_float(a, x, n);
  multiply(b, a, -1.0f, n);
  larger(a, a, b, n);
  return reduce<Reduction::max>(arena, a, n);
}

// Division of 0 <= x < 2^31 by a constant 1 <= d < 2^31: two shifts where d is a power of two, else a product with
// 1 / d that is off by less than 384 / d + 1, corrected by what is left over.
class Divisor {
 public:
  __aicore__ inline explicit Divisor(int64_t by) : by_(int32_t(by)) {
    while ((int64_t(1) << shift_) < by) ++shift_;
  }

  // All four are different. `scratch` is overwritten.
  __aicore__ inline void divide(const Ints& quotient, const Ints& rest, const Ints& x, const Ints& scratch,
                                uint32_t n) const {
    if ((int64_t(1) << shift_) == by_) {
      shift_right(quotient, x, shift_, n);
      shift_left(rest, quotient, shift_, n);
      return subtract(rest, x, rest, n);
    }
    guess(quotient, x, scratch, n);
    at_most(quotient, quotient, kInt32Max / by_, n);
    multiply(rest, quotient, by_, n);
    subtract(rest, x, rest, n);
    if (by_ <= 384) {
      guess(scratch, rest, scratch, n);
      move(quotient, rest, scratch, n);
    }
    at_most(scratch, rest, int32_t(0), n);
    at_least(scratch, scratch, int32_t(-1), n);
    move(quotient, rest, scratch, n);
    add(scratch, rest, 1 - by_, n);
    is_positive(scratch, scratch, n);
    move(quotient, rest, scratch, n);
  }

 private:
  __aicore__ inline void guess(const Ints& to, const Ints& x, const Ints& scratch, uint32_t n) const {
    const Local<float> ratio = scratch.ReinterpretCast<float>();
    to_float(ratio, x, n);
    multiply(ratio, ratio, 1.0f / float(by_), n);
    to_int(to, ratio, AscendC::RoundMode::CAST_FLOOR, n);
  }
  // `more` is added to the quotient and taken from the rest.
  __aicore__ inline void move(const Ints& quotient, const Ints& rest, const Ints& more, uint32_t n) const {
    add(quotient, quotient, more, n);
    multiply(more, more, by_, n);
    subtract(rest, rest, more, n);
  }

  int32_t by_, shift_ = 0;
};

// n values from `first` on, saturated to int32, as Cast does. `wide` has room for 8 n bytes. No copy out of either is
// under way.
__aicore__ inline void load_index(const Ints& to, const Index& index, int64_t first, uint32_t n, const Ints& wide) {
  sync<HardEvent::V_MTE2>();
  if (index.is_int64) load(wide, global<int32_t>(index.data)[uint64_t(2 * first)], 2 * n);
  else load(to, global<int32_t>(index.data)[uint64_t(first)], n);
  sync<HardEvent::MTE2_V>();
  if (!index.is_int64) return;
  in_order();
  AscendC::Cast(to, wide.ReinterpretCast<int64_t>(), AscendC::RoundMode::CAST_NONE, n);
}
__aicore__ inline void load_words(const Ints& to, const int32_t* from, int64_t first, uint32_t n) {
  load_index(to, {from, false}, first, n, to);
}

// n words to columns [column, column + n) of a row that starts at `row`, a 32-byte boundary. What else these 32-byte
// blocks hold becomes `value`, so a row may begin anywhere and still be copied out from its boundary.
__aicore__ inline void load_columns(const Ints& row, uint32_t column, const Global<int32_t>& from, uint32_t n,
                                    int32_t value) {
  const uint32_t before = column % 8, after = round_up(before + n, 8) - before - n;
  const AscendC::DataCopyExtParams shape{1, n * 4, 0, 0, 0};
  const AscendC::DataCopyPadExtParams<int32_t> rest{true, uint8_t(before), uint8_t(after), value};
  AscendC::DataCopyPad(row[column - before], from, shape, rest);
}

// One value of an index, by the scalar unit.
__aicore__ inline int64_t index_at(const Index& index, int64_t i) {
  return index.is_int64 ? global<int64_t>(index.data).GetValue(uint64_t(i))
                        : int64_t(global<int32_t>(index.data).GetValue(uint64_t(i)));
}

// What one of several cores works on: [begin, end) of `total`, in whole units. A unit must fill 32-byte blocks of every
// output, so that no two cores write the same one. Where an output starts elsewhere, one core does everything.
struct Share {
  int64_t begin, end;
};
__aicore__ inline Share share_of(int64_t total, int64_t unit, int64_t part, int64_t parts, bool aligned) {
  if (!aligned) return {0, part == 0 ? total : 0};
  const int64_t each = ((total + unit - 1) / unit + parts - 1) / parts * unit;
  return {min64(total, part * each), min64(total, (part + 1) * each)};
}
__aicore__ inline bool is_aligned(const void* data) { return (uintptr_t)data % 32 == 0; }

}  // namespace dspark::ascend
