// Which request owns a row: saturated prefix sums of lengths, then a bisection by the vector unit.
//
// Every core makes the sums for itself, 1792 requests at a time, so that no SyncAll is needed: log2(B) additions. All
// rows of a piece bisect at once, in five instructions a step: Gather the middle, subtract, clamp, add. The sums are
// scaled so that the clamped difference is the step itself. No Scatter exists to mark the starts instead, and marking
// them by the scalar unit would cost two accesses a request on every core.
#pragma once
#include "ascend/integers.h"

namespace dspark::ascend {

constexpr uint32_t kChunk = kSlot / 2;  // requests at a time: as int64 they fill a slot
constexpr uint32_t kRows = 1024;        // rows of a piece
// Slots of the arena: two for the sums, their offsets, and two of the bisection.
constexpr uint32_t kSums = 1, kSumsSpare = 2, kSumOffsets = 3, kTable = 4, kPlaces = 5;

class Sums {
 public:
  __aicore__ inline Sums(const Arena& arena, uint32_t slot, uint32_t spare)
      : arena_(arena), slot_(slot), spare_(spare) {}

  // The lengths (>= 0) of a chunk go in, what was summed up to each request comes out.
  __aicore__ inline Ints lengths() const { return arena_.slot<int32_t>(slot_); }
  __aicore__ inline Ints ends() const { return lengths(); }
  // One word before each end: what was summed up before each request.
  __aicore__ inline Ints whole() const { return arena_.whole_slot<int32_t>(slot_); }
  static constexpr uint32_t kBegin = 28;  // byte offset of the first request's word in it
  __aicore__ inline Ints scratch(uint32_t first = 0) const { return arena_.slot<int32_t>(spare_)[first]; }
  __aicore__ inline int64_t before() const { return before_; }
  __aicore__ inline int64_t total() const { return total_; }

  // Sums n >= 1 lengths. A float sum tells whether 2^31 is near; it is off by less than n * 2^-24 of itself.
  __aicore__ inline void accumulate(uint32_t n) {
    before_ = total_;
    const Local<float> rough = arena_.slot(spare_);
    to_float(rough, lengths(), n);
    if (float(before_) + reduce<Reduction::sum>(arena_, rough, n) < 2.1e9f) {
      scan(arena_, slot_, spare_, arena_.slot<int32_t>(kSumOffsets), n);
      add(ends(), ends(), int32_t(before_), n);
    } else {
      int64_t sum = before_;
      for (uint32_t i = 0; i < n; ++i) ends().SetValue(i, int32_t(sum = saturate32(sum + lengths().GetValue(i))));
      sync<HardEvent::S_V>();
    }
    fill(whole(), int32_t(before_), 8);
    sync<HardEvent::V_S>();
    total_ = ends().GetValue(n - 1);
  }

 private:
  const Arena& arena_;
  uint32_t slot_, spare_;
  int64_t before_ = 0, total_ = 0;
};

class Owners {
 public:
  __aicore__ inline Owners(const Arena& arena, const Sums& sums) : arena_(arena), sums_(sums) {
    count_up(index(), 0, kRows);
    add(bars(), index(), int32_t(1), kRows);
    multiply(bars(), bars(), kScale, kRows);
    make_offsets(arena.slot<int32_t>(kSumOffsets), kChunk);
  }

  // Of the rows of a piece: place in its request, and 4 times its request.
  __aicore__ inline Ints offset() const { return arena_.slot<int32_t>(kPlaces)[2 * kRows]; }
  __aicore__ inline Ints owner() const { return arena_.slot<int32_t>(kTable)[kEntries]; }

  // Owners of rows [first, first + n), all of this chunk of so many requests.
  __aicore__ inline void find(int64_t first, uint32_t n, uint32_t requests) {
    const Ints table = arena_.slot<int32_t>(kTable), probe = sums_.scratch();
    uint32_t entries = 1;
    while (entries < requests) entries *= 2;  // the last end lies past every row: never counted
    fill(table, (int32_t(kRows) + 1) * kScale, entries);
    add(table, sums_.ends(), int32_t(-first), requests);
    at_least(table, table, int32_t(0), requests);
    at_most(table, table, int32_t(kRows) + 1, requests);
    multiply(table, table, kScale, requests);
    fill(owner(), int32_t(0), n);
    for (uint32_t step = entries / 2; step > 0; step /= 2) {
      gather(probe, table, owner(), 4 * (step - 1), n);
      subtract(probe, bars(), probe, n);
      at_least(probe, probe, int32_t(0), n);
      at_most(probe, probe, int32_t(4 * step), n);
      add(owner(), owner(), probe, n);
    }
    gather(probe, sums_.whole(), owner(), Sums::kBegin, n);
    add(probe, probe, int32_t(-first), n);
    subtract(offset(), index(), probe, n);
  }

 private:
  static constexpr uint32_t kEntries = 2048;       // at least kChunk, a power of two
  static constexpr int32_t kScale = 2 * kEntries;  // at least the largest step, 4 * kEntries / 2
  static_assert(kEntries >= kChunk && kEntries + kRows <= kSlot && 3 * kRows <= kSlot);
  __aicore__ inline Ints index() const { return arena_.slot<int32_t>(kPlaces); }  // 0, 1, 2, ...
  __aicore__ inline Ints bars() const { return arena_.slot<int32_t>(kPlaces)[kRows]; }

  const Arena& arena_;
  const Sums& sums_;
};

// Byte offsets that interleave n words of one vector with n of another, which starts `gap` bytes later.
__aicore__ inline void make_interleave(const Ints& to, const Ints& scratch, int32_t gap, uint32_t n) {
  count_up(to, 0, 2 * n);
  shift_right(scratch, to, int32_t(1), 2 * n);
  multiply(to, to, gap, 2 * n);                    // gap j + (4 - 2 gap) (j / 2): no remainder needed
  multiply(scratch, scratch, 4 - 2 * gap, 2 * n);
  add(to, to, scratch, 2 * n);
}

}  // namespace dspark::ascend
