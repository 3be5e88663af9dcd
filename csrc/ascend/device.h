// What every planning kernel shares: the map of the unified buffer, vector instructions with their barrier, flags, and
// small reads and writes of global memory.
//
// The unified buffer is cut into twelve slots of 3584 floats (and 32 bytes before each, zero where a scan shifts them
// in) and one small area: 184 KiB in all, for Select needs the last 8. 3584 = 512 requests of 7 drafts. One plain
// buffer and explicit flags, no queues: these kernels move a few kilobytes once, so there is nothing to double-buffer.
#pragma once
#include "kernel_operator.h"  // first: it defines __aicore__, which common/order.h uses

#include "common/params.h"

namespace dspark::ascend {

using AscendC::HardEvent;
template <class T>
using Local = AscendC::LocalTensor<T>;
template <class T>
using Global = AscendC::GlobalTensor<T>;

constexpr uint32_t kLanes = 64;             // floats in one vector repeat
constexpr uint32_t kSlot = 3584;            // floats in a slot
constexpr uint32_t kSlotBytes = kSlot * 4 + 32;
constexpr uint32_t kSlots = 12;
constexpr uint32_t kSmallBytes = 16000;
constexpr uint32_t kArenaBytes = kSlots * kSlotBytes + kSmallBytes;
constexpr uint32_t kTileRequests = 448;     // requests of one tile of survival rows
constexpr float kTiny = 7.8886090522101181e-31f;  // 2^-100

// Offsets in the small area. A maximum leaves a value and its place of every repeat in the work space.
constexpr uint32_t kReduceWorkBytes = kSlot / kLanes * 2 * 4;
constexpr uint32_t kMaskA = 0, kMaskB = 448, kReduced = 896, kReduceWork = 928, kWords = 1376, kVectors = 1472;
constexpr uint32_t kVectorBytes = kTileRequests * 4, kColumns = kVectors + 6 * kVectorBytes;
static_assert(kReduceWork + kReduceWorkBytes <= kWords, "a reduction of a whole slot has its work space");
static_assert(kColumns + 2 * 128 <= kSmallBytes, "the small area holds its vectors");
static_assert(kArenaBytes <= (184 << 10), "Select needs the last 8 KiB");

__aicore__ inline uint32_t round_up(int64_t x, uint32_t to) { return uint32_t((x + to - 1) / to * to); }

template <HardEvent event>
__aicore__ inline void sync() {
  const int32_t id = int32_t(AscendC::GetTPipePtr()->FetchEventID(event));
  AscendC::SetFlag<event>(id);
  AscendC::WaitFlag<event>(id);
}

template <class T>
__aicore__ inline Global<T> global(const void* data) {
  Global<T> t;
  t.SetGlobalBuffer((__gm__ T*)(uintptr_t)data);
  return t;
}

// The arena. Slot 0 holds the keys of a resident plan from its first tile to its last length.
class Arena {
 public:
  __aicore__ inline Arena() { pipe_.InitBuffer(buffer_, kArenaBytes); }

  template <class T = float>
  __aicore__ inline Local<T> slot(uint32_t i) const {
    return buffer_.GetWithOffset<T>(kSlot * 4 / sizeof(T), i * kSlotBytes + 32);
  }
  // With the 32 bytes before it.
  template <class T>
  __aicore__ inline Local<T> whole_slot(uint32_t i) const {
    return buffer_.GetWithOffset<T>(kSlotBytes / sizeof(T), i * kSlotBytes);
  }
  // Pairs of a value and an index; `slots` slots hold slots / 2 times kSlot of them.
  __aicore__ inline Local<float> pairs(uint32_t first, uint32_t slots) const {
    return buffer_.GetWithOffset<float>(slots * kSlot, first * kSlotBytes);
  }
  template <class T>
  __aicore__ inline Local<T> small(uint32_t offset, uint32_t bytes) const {
    return buffer_.GetWithOffset<T>(bytes / sizeof(T), kSlots * kSlotBytes + offset);
  }
  __aicore__ inline Local<uint8_t> mask(bool second = false) const {
    return small<uint8_t>(second ? kMaskB : kMaskA, kSlot / 8);
  }
  // One of six vectors with an element per request of a tile.
  template <class T>
  __aicore__ inline Local<T> vector(uint32_t i) const {
    return small<T>(kVectors + i * kVectorBytes, kVectorBytes);
  }

 private:
  AscendC::TPipe pipe_;
  mutable AscendC::TBuf<AscendC::TPosition::VECCALC> buffer_;  // GetWithOffset is not const
};

// Vector instructions, each after all earlier ones: nearly every one here depends on the one before.
__aicore__ inline void in_order() { AscendC::PipeBarrier<PIPE_V>(); }

#define DSPARK_VECTOR_BINARY(name, Name)                                                               \
  template <class T>                                                                                   \
  __aicore__ inline void name(const Local<T>& to, const Local<T>& a, const Local<T>& b, uint32_t n) {  \
    in_order();                                                                                        \
    AscendC::Name(to, a, b, int32_t(n));                                                               \
  }
#define DSPARK_VECTOR_SCALAR(name, Name)                                                  \
  template <class T>                                                                      \
  __aicore__ inline void name(const Local<T>& to, const Local<T>& a, T b, uint32_t n) {   \
    in_order();                                                                           \
    AscendC::Name(to, a, b, int32_t(n));                                                  \
  }
DSPARK_VECTOR_BINARY(add, Add)
DSPARK_VECTOR_BINARY(subtract, Sub)
DSPARK_VECTOR_BINARY(multiply, Mul)
DSPARK_VECTOR_BINARY(divide, Div)
DSPARK_VECTOR_BINARY(larger, Max)
DSPARK_VECTOR_BINARY(smaller, Min)
DSPARK_VECTOR_SCALAR(add, Adds)
DSPARK_VECTOR_SCALAR(multiply, Muls)
DSPARK_VECTOR_SCALAR(at_least, Maxs)
DSPARK_VECTOR_SCALAR(at_most, Mins)
DSPARK_VECTOR_SCALAR(shift_left, ShiftLeft)
DSPARK_VECTOR_SCALAR(shift_right, ShiftRight)
#undef DSPARK_VECTOR_BINARY
#undef DSPARK_VECTOR_SCALAR

template <class T>
__aicore__ inline void fill(const Local<T>& to, T value, uint32_t n) {
  in_order();
  AscendC::Duplicate(to, value, int32_t(n));
}
template <class T>
__aicore__ inline void copy(const Local<T>& to, const Local<T>& from, uint32_t n) {
  in_order();
  AscendC::DataCopy(to, from, n);
}
__aicore__ inline void to_float(const Local<float>& to, const Local<int32_t>& from, uint32_t n) {
  in_order();
  AscendC::Cast(to, from, AscendC::RoundMode::CAST_NONE, n);
}
__aicore__ inline void to_int(const Local<int32_t>& to, const Local<float>& from, AscendC::RoundMode mode, uint32_t n) {
  in_order();
  AscendC::Cast(to, from, mode, n);
}
template <class T>
__aicore__ inline void gather(const Local<T>& to, const Local<T>& from, const Local<int32_t>& offsets, uint32_t base,
                              uint32_t n) {
  in_order();
  AscendC::Gather(to, from, offsets.ReinterpretCast<uint32_t>(), base, n);
}
// first, first + 1, ... The scalar unit writes the first 32 bytes: it must wait for the vector unit.
__aicore__ inline void count_up(const Local<int32_t>& to, int32_t first, uint32_t n) {
  sync<HardEvent::V_S>();
  AscendC::CreateVecIndex(to, first, n);
}
// 4 i, the byte offsets of consecutive words.
__aicore__ inline void make_offsets(const Local<int32_t>& to, uint32_t n) {
  count_up(to, 0, n);
  multiply(to, to, int32_t(4), n);
}

// to = from where `from mode value`, else `otherwise`. n is a multiple of 64.
__aicore__ inline void compare(const Local<uint8_t>& mask, const Local<float>& x, AscendC::CMPMODE mode, float value,
                               uint32_t n) {
  in_order();
  AscendC::CompareScalar(mask, x, value, mode, n);
}
__aicore__ inline void select(const Local<float>& to, const Local<uint8_t>& mask, const Local<float>& from,
                              float otherwise, uint32_t n) {
  in_order();
  AscendC::Select(to, mask, from, otherwise, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
}
__aicore__ inline void keep(const Arena& arena, const Local<float>& to, const Local<float>& from, AscendC::CMPMODE mode,
                            float value, float otherwise, uint32_t n) {
  compare(arena.mask(), from, mode, value, n);
  select(to, arena.mask(), from, otherwise, n);
}

// Reductions to the scalar unit. Sums are of integers below 2^24, so that any order of addition is exact.
enum class Reduction { sum, max, min };
template <Reduction kind>
__aicore__ inline float reduce(const Arena& arena, const Local<float>& x, uint32_t n) {
  const Local<float> result = arena.small<float>(kReduced, 32);
  const Local<float> work = arena.small<float>(kReduceWork, kReduceWorkBytes);
  in_order();
  if (kind == Reduction::sum) AscendC::ReduceSum(result, x, work, int32_t(n));
  else if (kind == Reduction::max) AscendC::ReduceMax(result, x, work, int32_t(n));
  else AscendC::ReduceMin(result, x, work, int32_t(n));
  sync<HardEvent::V_S>();
  return result.GetValue(0);
}
__aicore__ inline int64_t sum(const Arena& arena, const Local<float>& x, uint32_t n) {
  return int32_t(reduce<Reduction::sum>(arena, x, n));
}

// Sum of floor(s * 2^43) over n <= 4096 values in [0, 1]: four limbs of 7, 12, 12 and 12 bits, each summed exactly.
// Overwrites x, and `whole` as scratch.
__aicore__ inline int64_t sum_q43(const Arena& arena, const Local<float>& x, const Local<float>& whole, uint32_t n) {
  int64_t total = 0;
  for (int limb = 0; limb < 4; ++limb) {
    multiply(x, x, limb ? 4096.0f : 128.0f, n);
    to_int(whole.ReinterpretCast<int32_t>(), x, AscendC::RoundMode::CAST_FLOOR, n);
    to_float(whole, whole.ReinterpretCast<int32_t>(), n);
    subtract(x, x, whole, n);
    total = (total << 12) + sum(arena, whole, n);
  }
  return total;
}

// Inclusive prefix sum of the n int32 of a slot (n a multiple of 8) in log2(n) steps; the two slots may change places.
__aicore__ inline void scan(const Arena& arena, uint32_t& slot, uint32_t& spare, const Local<int32_t>& offsets,
                            uint32_t n) {
  fill(arena.whole_slot<int32_t>(slot), int32_t(0), 8);
  for (uint32_t by = 1; by < 8; by *= 2) {  // operands are aligned to 8 words: shorter shifts need Gather
    gather(arena.slot<int32_t>(spare), arena.whole_slot<int32_t>(slot), offsets, (8 - by) * 4, n);
    add(arena.slot<int32_t>(slot), arena.slot<int32_t>(slot), arena.slot<int32_t>(spare), n);
  }
  for (uint32_t by = 8; by < n; by *= 2) {
    const Local<int32_t> from = arena.slot<int32_t>(slot), to = arena.slot<int32_t>(spare);
    add(to[by], from[by], from, n - by);
    AscendC::DataCopy(to, from, by);
    const uint32_t last = slot;
    slot = spare;
    spare = last;
  }
}

// Copies of `rows` times `count` elements. In global memory `gap` elements lie between rows; in the buffer a row starts
// at the next 32 bytes, and the end of its last 32 bytes is undefined.
template <class T>
__aicore__ inline void load(const Local<T>& to, const Global<T>& from, uint32_t count, uint32_t rows = 1,
                            int64_t gap = 0) {
  const AscendC::DataCopyExtParams shape{uint16_t(rows), uint32_t(count * sizeof(T)), uint32_t(gap * sizeof(T)), 0, 0};
  AscendC::DataCopyPad(to, from, shape, AscendC::DataCopyPadExtParams<T>{false, 0, 0, T()});
}
template <class T>
__aicore__ inline void store(const Global<T>& to, const Local<T>& from, uint32_t count, uint32_t rows = 1,
                             int64_t gap = 0) {
  const AscendC::DataCopyExtParams shape{uint16_t(rows), uint32_t(count * sizeof(T)), 0, uint32_t(gap * sizeof(T)), 0};
  AscendC::DataCopyPad(to, from, shape);
}

}  // namespace dspark::ascend
