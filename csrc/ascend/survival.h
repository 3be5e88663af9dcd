// Tiles of survival rows: loads a tile of requests and drafts, turns it so that a vector runs over requests, and makes
// the left-to-right products (or, of a caller's survival, the running minima in [0, 1]).
//
// A tile is [columns][lanes] in slot 4. Whole rows that lie one after the other come in one copy, and so does a table
// of rows by slot that fits (row_table.h). Rows of a larger one, or under a mask of fresh ones, come in one copy each:
// a row that is not read keeps the constant that was there before.
// Turning is one Gather per draft in, one Gather for all out: Scatter does not exist here.
// A product below 2^-100 becomes 0 at the end of the tile instead of at each step: no later factor exceeds 1.
#pragma once
#include "ascend/row_table.h"
#include "ascend/sigmoid.h"

namespace dspark::ascend {

class SurvivalTiles {
 public:
  __aicore__ inline SurvivalTiles(const Arena& arena, const Source& source, int64_t batch, int64_t gamma)
      : arena_(arena), source_(source), batch_(batch), gamma_(gamma), table_(arena, source, gamma) {
    const Freshness& f = source.freshness;
    by_row_ = !source.given && (source.confidence.slots || f.fresh || f.generation);
    in_table_ = by_row_ && table_.fits();
  }
  __aicore__ inline ~SurvivalTiles() { wait_store(); }

  // Computes the tile into slot 4, [drafts][lanes], and stores what is to be kept.
  __aicore__ inline Local<float> make(const Tile& tile) {
    const Local<float> x = arena_.slot(4);
    const uint32_t n = tile.size();
    if (source_.given) {
      fetch_rows<float>(global<float>(source_.given), tile);
      turn<float>(x, tile);
    } else {
      fetch(tile, x);
      if (source_.confidence.is_logits) calibrate(x, tile);
    }
    keep(arena_, x, x, AscendC::CMPMODE::GT, 0.0f, 0.0f, n);
    at_most(x, x, 1.0f, n);
    if (has_unread_)
      for (uint32_t k = 0; k < tile.drafts; ++k)
        larger(x[k * tile.lanes], x[k * tile.lanes], arena_.vector<float>(2), tile.lanes);
    if (source_.calibrated) keep_rows(source_.calibrated, x, tile);
    chain(x, tile);
    if (!source_.given) keep(arena_, x, x, AscendC::CMPMODE::GE, kTiny, 0.0f, n);
    if (source_.survival) keep_rows(source_.survival, x, tile);
    sync<HardEvent::V_MTE2>();
    return x;
  }

 private:
  __aicore__ inline void fetch(const Tile& tile, const Local<float>& x) {
    const Float dtype = source_.confidence.dtype;
    if (dtype == Float::f32) {
      fetch_columns<float>(tile, x);
    } else {
      const Local<uint16_t> halves = arena_.slot<uint16_t>(5);
      fetch_columns<uint16_t>(tile, halves);
      in_order();
      if (dtype == Float::bf16)
        AscendC::Cast(x, halves.ReinterpretCast<bfloat16_t>(), AscendC::RoundMode::CAST_NONE, tile.size());
      else AscendC::Cast(x, halves.ReinterpretCast<half>(), AscendC::RoundMode::CAST_NONE, tile.size());
    }
    if (in_table_) table_.mark(x, tile, unread_value<float>());
  }

  template <class T>
  __aicore__ inline void fetch_columns(const Tile& tile, const Local<T>& to) {
    if (in_table_) {
      table_.fetch<T>(tile);
      has_unread_ = source_.freshness.optimistic && source_.confidence.is_logits;
      take_columns<T>(to, tile, uint32_t(tile.draft * sizeof(T)));
    } else {
      fetch_rows<T>(global<T>(source_.confidence.values), tile);
      turn<T>(to, tile);
    }
  }

  // Rows into slot 1, `stride_` elements apart.
  template <class T>
  __aicore__ inline void fetch_rows(const Global<T>& values, const Tile& tile) {
    const bool dense = !by_row_ && tile.drafts == gamma_;
    stride_ = dense ? uint32_t(gamma_) : round_up(tile.drafts, 32 / sizeof(T));
    const Local<T> rows = arena_.slot<T>(1);
    if (by_row_) {
      fetch_each<T>(values, tile, rows);
    } else if (dense) {
      load(rows, values[uint64_t(tile.request * gamma_)], tile.requests * tile.drafts);
    } else {
      load(rows, values[uint64_t(tile.request * gamma_ + tile.draft)], tile.drafts, tile.requests,
           gamma_ - tile.drafts);
    }
    sync<HardEvent::MTE2_V>();
  }

  template <class T>
  __aicore__ inline void fetch_each(const Global<T>& values, const Tile& tile, const Local<T>& rows) {
    const bool optimistic = source_.freshness.optimistic;
    fill(rows, unread_value<T>(), tile.lanes * stride_);
    has_unread_ = optimistic && source_.confidence.is_logits;
    const Local<float> unread = arena_.vector<float>(2);
    if (has_unread_) fill(unread, 0.0f, tile.lanes);
    sync<HardEvent::V_MTE2>();
    sync<HardEvent::V_S>();
    load_owners(tile);
    for (uint32_t i = 0; i < tile.requests; ++i) {
      const int64_t row = row_of(tile, i);
      if (is_read(row, i)) load(rows[i * stride_], values[uint64_t(row * gamma_ + tile.draft)], tile.drafts);
      else if (has_unread_) unread.SetValue(i, 1.0f);
    }
    sync<HardEvent::S_V>();
  }

  // What a row that is not read holds: 1 or 0 as a confidence; as a logit NaN, whose sigmoid is 0.
  template <class T>
  __aicore__ inline T unread_value() const {
    const Confidence& c = source_.confidence;
    if (!c.is_logits && !source_.freshness.optimistic) return T(0);
    if (sizeof(T) == 4) return T(c.is_logits ? bits_float(0x7fc00000u) : 1.0f);
    if (c.dtype == Float::bf16) return T(c.is_logits ? 0x7fc0 : 0x3f80);
    return T(c.is_logits ? 0x7e00 : 0x3c00);
  }

  // ---- who owns which row: slots, freshness and generations of a tile, in slots 9 and 10 ----

  __aicore__ inline Local<int64_t> owners() const { return arena_.slot<int64_t>(9)[0]; }
  __aicore__ inline Local<int64_t> expected() const { return arena_.slot<int64_t>(9)[kTileRequests]; }
  __aicore__ inline Local<uint8_t> fresh() const { return arena_.slot<uint8_t>(9)[kTileRequests * 16]; }
  __aicore__ inline Local<int64_t> generations() const { return arena_.slot<int64_t>(10); }

  __aicore__ inline void load_index(const Local<int64_t>& to, const Index& index, const Tile& tile) {
    if (index.is_int64) load(to, global<int64_t>(index.data)[uint64_t(tile.request)], tile.requests);
    else load(to.ReinterpretCast<int32_t>(), global<int32_t>(index.data)[uint64_t(tile.request)], tile.requests);
  }
  __aicore__ inline int64_t element(const Local<int64_t>& from, const Index& index, uint32_t i) const {
    return index.is_int64 ? from.GetValue(i) : from.ReinterpretCast<int32_t>().GetValue(i);
  }
  __aicore__ inline int64_t row_of(const Tile& tile, uint32_t i) const {
    const Index& slots = source_.confidence.slots;
    return slots ? element(owners(), slots, i) : tile.request + i;
  }
  __aicore__ inline bool is_inside(int64_t row) const { return row >= 0 && row < source_.confidence.rows; }

  __aicore__ inline void load_owners(const Tile& tile) {
    const Freshness& f = source_.freshness;
    if (source_.confidence.slots) load_index(owners(), source_.confidence.slots, tile);
    if (f.fresh) load(fresh(), global<uint8_t>(f.fresh)[uint64_t(tile.request)], tile.requests);
    if (f.generation) load(expected(), global<int64_t>(f.expected)[uint64_t(tile.request)], tile.requests);
    sync<HardEvent::MTE2_S>();
    if (!f.generation) return;
    for (uint32_t i = 0; i < tile.requests; ++i) {
      const int64_t row = row_of(tile, i);
      if (is_inside(row)) load(generations()[i * 4], global<int64_t>(f.generation)[uint64_t(row)], 1);
    }
    sync<HardEvent::MTE2_S>();
  }

  __aicore__ inline bool is_read(int64_t row, uint32_t i) const {
    const Freshness& f = source_.freshness;
    if (!is_inside(row)) return false;
    if (!f.optimistic) return true;
    if (f.fresh && !fresh().GetValue(i)) return false;
    if (!f.generation) return true;
    const int64_t wanted = expected().GetValue(i);
    return wanted >= 1 && generations().GetValue(i * 4) == wanted;
  }

  // ---- from rows to columns and back ----

  template <class T>
  __aicore__ inline void turn(const Local<T>& to, const Tile& tile) {
    const Local<int32_t> offsets = arena_.vector<int32_t>(0);
    count_up(offsets, 0, tile.lanes);
    multiply(offsets, offsets, int32_t(stride_ * sizeof(T)), tile.lanes);
    take_columns<T>(to, tile, 0);
  }
  // to[k] = element k of the rows in slot 1 that begin at the bytes in vector 0, `base` further.
  template <class T>
  __aicore__ inline void take_columns(const Local<T>& to, const Tile& tile, uint32_t base) {
    in_order();
    for (uint32_t k = 0; k < tile.drafts; ++k)
      AscendC::Gather(to[k * tile.lanes], arena_.slot<T>(1), arena_.vector<uint32_t>(0),
                      base + uint32_t(k * sizeof(T)), tile.lanes);
  }

  // The products or minima along k, in place; vector 1 carries the last row to the next drafts of the same requests.
  __aicore__ inline void chain(const Local<float>& x, const Tile& tile) {
    const Local<float> carry = arena_.vector<float>(1);
    for (uint32_t k = 0; k < tile.drafts; ++k) {
      if (k == 0 && tile.draft == 0) continue;
      const Local<float> row = x[k * tile.lanes], before = k ? x[(k - 1) * tile.lanes] : carry;
      if (source_.given) smaller(row, row, before, tile.lanes);
      else multiply(row, row, before, tile.lanes);
    }
    if (tile.draft + tile.drafts < gamma_) copy(carry, x[(tile.drafts - 1) * tile.lanes], tile.lanes);
  }

  __aicore__ inline void keep_rows(float* to, const Local<float>& x, const Tile& tile) {
    const bool dense = tile.drafts == gamma_;
    const uint32_t width = dense ? tile.drafts : round_up(tile.drafts, 8), n = tile.requests * width;
    const Local<float> rows = arena_.slot(2), place = arena_.slot(5);
    const Local<int32_t> offsets = arena_.slot<int32_t>(3), request = place.ReinterpretCast<int32_t>();
    // offset = 4 (k lanes + r) with r = i / width, k = i - r width
    count_up(offsets, 0, n);
    to_float(place, offsets, n);
    add(place, place, 0.5f, n);
    multiply(place, place, 1.0f / float(width), n);
    to_int(request, place, AscendC::RoundMode::CAST_FLOOR, n);
    multiply(offsets, offsets, int32_t(tile.lanes), n);
    multiply(request, request, int32_t(1 - int32_t(width * tile.lanes)), n);
    add(offsets, offsets, request, n);
    multiply(offsets, offsets, int32_t(4), n);
    wait_store();
    gather(rows, x, offsets, 0, n);
    sync<HardEvent::V_MTE3>();
    const Global<float> place_in = global<float>(to)[uint64_t(tile.request * gamma_ + tile.draft)];
    if (dense) store(place_in, rows, n);
    else store(place_in, rows, tile.drafts, tile.requests, gamma_ - tile.drafts);
    // Occupied, unlike those of sync(), which are fetched and waited for at once.
    event_ = int32_t(AscendC::GetTPipePtr()->AllocEventID<HardEvent::MTE3_V>());
    AscendC::SetFlag<HardEvent::MTE3_V>(event_);
    storing_ = true;
  }

  __aicore__ inline void wait_store() {
    if (!storing_) return;
    AscendC::WaitFlag<HardEvent::MTE3_V>(event_);
    AscendC::GetTPipePtr()->ReleaseEventID<HardEvent::MTE3_V>(event_);
    storing_ = false;
  }

  // ---- logits ----

  __aicore__ inline void calibrate(const Local<float>& x, const Tile& tile) {
    const Confidence& c = source_.confidence;
    const Local<float> scale = arena_.small<float>(kColumns, 128), bias = arena_.small<float>(kColumns + 128, 128);
    const Local<float> offset = arena_.vector<float>(3);
    sync<HardEvent::V_MTE2>();
    if (c.scale) load(scale, global<float>(c.scale)[uint64_t(tile.draft)], tile.drafts);
    if (c.bias) load(bias, global<float>(c.bias)[uint64_t(tile.draft)], tile.drafts);
    if (c.offset) load_offsets(offset, tile);
    sync<HardEvent::MTE2_S>();
    sync<HardEvent::MTE2_V>();
    for (uint32_t k = 0; k < tile.drafts; ++k) {
      const Local<float> row = x[k * tile.lanes];
      if (c.scale) multiply(row, row, scale.GetValue(k), tile.lanes);
      if (c.bias) add(row, row, bias.GetValue(k), tile.lanes);
      if (c.offset) add(row, row, offset, tile.lanes);
    }
    wait_store();
    sigmoid(arena_, x, {arena_.slot(5), arena_.slot(6), arena_.slot(7), arena_.slot(8), arena_.slot(9), arena_.slot(10),
                        arena_.slot(1), arena_.slot(11), arena_.slot(2)}, tile.size());
  }

  // offset[slot of r] per request, 0 where there is none.
  __aicore__ inline void load_offsets(const Local<float>& to, const Tile& tile) {
    const Confidence& c = source_.confidence;
    const Global<float> offset = global<float>(c.offset);
    if (!c.offset_slots) {
      load(to, offset[uint64_t(tile.request)], tile.requests);
      return;
    }
    const Local<float> each = arena_.slot(6);
    fill(each, 0.0f, tile.lanes * 8);
    sync<HardEvent::V_MTE2>();
    load_index(owners(), c.offset_slots, tile);
    sync<HardEvent::MTE2_S>();
    for (uint32_t i = 0; i < tile.requests; ++i) {
      const int64_t slot = element(owners(), c.offset_slots, i);
      if (slot >= 0 && slot < c.offset_rows) load(each[i * 8], offset[uint64_t(slot)], 1);
    }
    sync<HardEvent::MTE2_V>();
    const Local<int32_t> places = arena_.vector<int32_t>(0);
    count_up(places, 0, tile.lanes);
    multiply(places, places, int32_t(32), tile.lanes);
    gather(to, each, places, 0, tile.lanes);
  }

  const Arena& arena_;
  const Source& source_;
  int64_t batch_, gamma_;
  RowTable table_;
  bool by_row_ = false, in_table_ = false, has_unread_ = false, storing_ = false;
  uint32_t stride_ = 0;
  int32_t event_ = 0;
};

}  // namespace dspark::ascend
