// Confidences by slot whose whole table fits the unified buffer: one copy of the table (and one of its generations),
// then the vector unit takes each request's row from it and decides which rows are read. A larger table, or a mask of
// fresh requests, is left to a copy and some scalar reads per request (survival.h).
//
// Slot numbers and generations are 64-bit integers, which the vector unit lacks: it sees two words of each.
#pragma once
#include "ascend/source.h"

namespace dspark::ascend {

class RowTable {
 public:
  __aicore__ inline RowTable(const Arena& arena, const Source& source, int64_t gamma)
      : arena_(arena), source_(source), gamma_(gamma) {}

  __aicore__ inline bool fits() const {
    const int64_t rows = source_.confidence.rows;
    const bool generations_fit = !source_.freshness.generation || rows * 2 <= kSlot;
    return rows > 0 && rows * gamma_ <= kSlot && generations_fit && !source_.freshness.fresh;
  }

  // The table into slot 1, and into vector 0 the byte at which each request's row begins.
  template <class T>
  __aicore__ inline void fetch(const Tile& tile) const {
    const Confidence& c = source_.confidence;
    const uint32_t lanes = tile.lanes, rows = uint32_t(c.rows);
    sync<HardEvent::V_MTE2>();
    load(arena_.slot<T>(1), global<T>(c.values), uint32_t(rows * gamma_));
    if (c.slots.is_int64) load(slots(), global<int64_t>(c.slots.data)[uint64_t(tile.request)], tile.requests);
    else if (c.slots) load(low(slots()), global<int32_t>(c.slots.data)[uint64_t(tile.request)], tile.requests);
    if (checks_generation()) {
      load(generations(), global<int64_t>(source_.freshness.generation), rows);
      load(expected(), global<int64_t>(source_.freshness.expected)[uint64_t(tile.request)], tile.requests);
    }
    sync<HardEvent::MTE2_V>();
    fill(lane<float>(kIsRead), 1.0f, lanes);
    find_rows(tile);
    if (checks_generation()) compare_generations(lanes);
    multiply(arena_.vector<int32_t>(0), lane<int32_t>(kRow), int32_t(gamma_ * sizeof(T)), lanes);
  }

  // x[k] = unread in the lanes of rows that are not read; vector 2 tells which, 1 where not.
  __aicore__ inline void mark(const Local<float>& x, const Tile& tile, float unread) const {
    compare(arena_.mask(), lane<float>(kIsRead), AscendC::CMPMODE::GT, 0.0f, tile.lanes);
    for (uint32_t k = 0; k < tile.drafts; ++k)
      select(x[k * tile.lanes], arena_.mask(), x[k * tile.lanes], unread, tile.lanes);
    multiply(arena_.vector<float>(2), lane<float>(kIsRead), -1.0f, tile.lanes);
    add(arena_.vector<float>(2), arena_.vector<float>(2), 1.0f, tile.lanes);
  }

 private:
  enum Lane { kRow, kIsRead, kWord, kOther, kFloat, kPlaces, kZero };
  template <class T>
  __aicore__ inline Local<T> lane(Lane i) const {
    return arena_.slot<T>(6)[i * kTileRequests];
  }
  __aicore__ inline Local<int64_t> slots() const { return arena_.slot<int64_t>(9); }
  __aicore__ inline Local<int64_t> expected() const { return arena_.slot<int64_t>(9)[kTileRequests]; }
  __aicore__ inline Local<int64_t> generations() const { return arena_.slot<int64_t>(10); }
  __aicore__ inline Local<int32_t> low(const Local<int64_t>& words) const { return words.ReinterpretCast<int32_t>(); }
  __aicore__ inline bool checks_generation() const {
    return source_.freshness.optimistic && source_.freshness.generation;
  }

  // Lanes of which `flag` stays, by a condition on floats, or on words that must be equal.
  __aicore__ inline void require(Lane flag, const Local<float>& x, AscendC::CMPMODE mode, float value,
                                 uint32_t lanes) const {
    compare(arena_.mask(), x, mode, value, lanes);
    select(lane<float>(flag), arena_.mask(), lane<float>(flag), 0.0f, lanes);
  }
  __aicore__ inline void require_equal(Lane flag, const Local<int32_t>& a, const Local<int32_t>& b,
                                       uint32_t lanes) const {
    in_order();
    AscendC::Compare(arena_.mask(), a, b, AscendC::CMPMODE::EQ, lanes);
    select(lane<float>(flag), arena_.mask(), lane<float>(flag), 0.0f, lanes);
  }

  // kRow: the row of each request, inside the table; rows outside it are not read.
  __aicore__ inline void find_rows(const Tile& tile) const {
    const Index& index = source_.confidence.slots;
    const Local<int32_t> row = lane<int32_t>(kRow), places = lane<int32_t>(kPlaces), zero = lane<int32_t>(kZero);
    make_offsets(places, tile.lanes);
    multiply(places, places, int32_t(2), tile.lanes);
    fill(zero, int32_t(0), tile.lanes);
    if (!index) {
      count_up(row, int32_t(tile.request), tile.lanes);
    } else if (index.is_int64) {
      gather(row, low(slots()), places, 0, tile.lanes);
      gather(lane<int32_t>(kWord), low(slots()), places, 4, tile.lanes);
      require_equal(kIsRead, lane<int32_t>(kWord), zero, tile.lanes);
    } else {
      copy(row, low(slots()), tile.lanes);
    }
    // A float tells numbers apart that are as small as those of rows.
    to_float(lane<float>(kFloat), row, tile.lanes);
    require(kIsRead, lane<float>(kFloat), AscendC::CMPMODE::GE, 0.0f, tile.lanes);
    require(kIsRead, lane<float>(kFloat), AscendC::CMPMODE::LT, float(int32_t(source_.confidence.rows)), tile.lanes);
    at_least(row, row, int32_t(0), tile.lanes);
    at_most(row, row, int32_t(source_.confidence.rows - 1), tile.lanes);
  }

  // Fresh: the row's generation is the expected one, which is 1 at least.
  __aicore__ inline void compare_generations(uint32_t lanes) const {
    const Local<int32_t> word = lane<int32_t>(kWord), other = lane<int32_t>(kOther), at = arena_.vector<int32_t>(0);
    const Local<int32_t> zero = lane<int32_t>(kZero);
    const Local<float> is_zero = lane<float>(kFloat);
    multiply(at, lane<int32_t>(kRow), int32_t(8), lanes);
    fill(is_zero, 1.0f, lanes);
    for (uint32_t byte = 0; byte <= 4; byte += 4) {
      gather(word, low(generations()), at, byte, lanes);
      gather(other, low(expected()), lane<int32_t>(kPlaces), byte, lanes);
      require_equal(kIsRead, word, other, lanes);
      require_equal(kFloat, other, zero, lanes);
    }
    // `other` is the upper word, which has the sign.
    subtract(lane<float>(kIsRead), lane<float>(kIsRead), is_zero, lanes);
    to_float(is_zero, other, lanes);
    require(kIsRead, is_zero, AscendC::CMPMODE::GE, 0.0f, lanes);
    at_least(lane<float>(kIsRead), lane<float>(kIsRead), 0.0f, lanes);
  }

  const Arena& arena_;
  const Source& source_;
  const int64_t gamma_;
};

}  // namespace dspark::ascend
