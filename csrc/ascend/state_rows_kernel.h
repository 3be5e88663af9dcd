// Rows of the explicit form: int32[B, window + width].
//
// A tile of requests is one vector: words per request are computed once, then gathered to every column. The interval of
// columns that have a row is two differences, a minimum and a clamp. A row of the ring is a remainder, which for a power
// of two is three instructions. Requests are shared out over the cores by eights, whose rows fill whole 32-byte blocks.
//
// With token maps (C4) the tokens of a request come by one copy. Tokens of a page lie one after the other, so a second
// copy takes as many entries of full_to_swa from the first token's on; what the vector unit finds not to be where that
// copy looked is read by the scalar unit: one request in eight has some, at a page of 128 and 16 columns.
// Rings and maps beyond 2^29, rings of one row, and maps whose rows may exceed int32 are left to the scalar unit.
#pragma once
#include "ascend/integers.h"

namespace dspark::ascend {

class StateRows {
 public:
  __aicore__ inline explicit StateRows(const StateRowsParams& p)
      : p_(p), columns_(p.window + p.width), by_ring_(p.ring), by_page_(p.swa_page > 0 ? p.swa_page : 1),
        small_(p.ring <= kMost && p.tokens <= kMost && (paged() || p.ring > 1)) {
    const int64_t tile = paged() ? kSlot / 2 : kSlot;  // int64 maps: two words an element
    share_ = share_of(p.batch, 8, AscendC::GetBlockIdx(), AscendC::GetBlockNum(), is_aligned(p.state_rows));
    window_ = uint32_t(min64(columns_, tile));
    pitch_ = round_up(window_, 8);
    most_ = uint32_t(min64(min64(tile / pitch_, kVector), share_.end - share_.begin));
    if (most_ == 0) return;
    in_order();
    AscendC::CreateVecIndex(work(0), int32_t(0), most_ * pitch_);
    Divisor(pitch_).divide(owner(), column(), work(0), work(1), most_ * pitch_);
    multiply(owner(), owner(), int32_t(4), most_ * pitch_);
  }

  __aicore__ inline void run() {
    for (first_ = share_.begin; first_ < share_.end; first_ += most_) {
      requests_ = uint32_t(min64(most_, share_.end - first_));
      read_requests();
      for (int64_t x = 0; x < columns_; x += window_) {
        const uint32_t width = uint32_t(min64(window_, columns_ - x));
        if (!small_ || !make_rows(int32_t(x), width)) make_by_scalar(x, width);
        sync<HardEvent::V_MTE3>();
        store(global<int32_t>(p_.state_rows)[uint64_t(first_ * columns_ + x)], rows(), width, requests_,
              columns_ - width);
        sync<HardEvent::MTE3_V>();
        sync<HardEvent::MTE3_S>();
      }
    }
  }

 private:
  static constexpr uint32_t kVector = kSlot / 8, kOwner = 1, kColumn = 2, kRows = 3, kWork = 4, kTokens = 9, kWide = 10,
                            kNarrow = 11;
  static constexpr int64_t kMost = 1 << 29;

  __aicore__ inline bool paged() const { return p_.swa_page > 0; }
  __aicore__ inline Ints slot(uint32_t i) const { return arena_.slot<int32_t>(i); }
  // Per element: 4 times its request in the tile, its column in the window, its result; scratch.
  __aicore__ inline Ints owner() const { return slot(kOwner); }
  __aicore__ inline Ints column() const { return slot(kColumn); }
  __aicore__ inline Ints rows() const { return slot(kRows); }
  __aicore__ inline Ints work(uint32_t i) const { return slot(kWork + i); }
  // Per request of the tile.
  __aicore__ inline Ints request(uint32_t i) const { return slot(0)[i * kVector]; }
  __aicore__ inline Ints starts() const { return request(0); }
  __aicore__ inline Ints begins() const { return request(1); }  // columns that may have a row: [begin, end)
  __aicore__ inline Ints ends() const { return request(2); }
  __aicore__ inline Ints slots() const { return request(3); }
  __aicore__ inline Ints phases() const { return request(4); }  // of the start in the ring
  __aicore__ inline Ints bases() const { return request(5); }   // first row of the ring
  __aicore__ inline Ints limits() const { return request(6); }  // largest phase whose row is an int32
  __aicore__ inline Ints anchors() const { return request(7); } // token that column 0 would have

  __aicore__ inline void read_requests() {
    const uint32_t n = requests_;
    const int32_t window = int32_t(p_.window), columns = int32_t(columns_);
    load_index(starts(), p_.start_pos, first_, n, work(0));
    at_least(starts(), starts(), int32_t(0), n);
    multiply(begins(), starts(), int32_t(-1), n);
    add(begins(), begins(), window, n);
    at_least(begins(), begins(), int32_t(0), n);
    at_most(begins(), begins(), columns, n);
    count_owned(n);
    add(ends(), ends(), window, n);
    at_least(ends(), ends(), int32_t(0), n);
    at_most(ends(), ends(), columns, n);
    load_words(work(0), p_.seqused, first_, n);
    is_positive(work(0), work(0), n);
    multiply(ends(), ends(), work(0), n);
    load_index(slots(), p_.request_slot, first_, n, work(0));
    at_least(slots(), slots(), int32_t(-1), n);
    if (!paged() && small_) place_rings(n);
  }

  // ends = cu[i + 1] - cu[i], of halves because the difference of any two int32 is none; clamped far outside the columns.
  __aicore__ inline void count_owned(uint32_t n) const {
    const Ints cu[2] = {work(0), work(1)}, half[2] = {work(2), work(3)};
    for (int k = 0; k < 2; ++k) {
      load_words(cu[k], p_.cu_seqlens, first_ + k, n);
      shift_right(half[k], cu[k], int32_t(1), n);
      multiply(work(4), half[k], int32_t(2), n);
      subtract(cu[k], cu[k], work(4), n);
    }
    subtract(half[1], half[1], half[0], n);
    at_least(half[1], half[1], -int32_t(1 << 26), n);
    at_most(half[1], half[1], int32_t(1 << 26), n);
    multiply(half[1], half[1], int32_t(2), n);
    subtract(cu[1], cu[1], cu[0], n);
    add(ends(), half[1], cu[1], n);
  }

  // slot * ring + phase is an int32 for every phase if slot < L = floor((2^31 - 1) / ring), for some if slot = L.
  __aicore__ inline void place_rings(uint32_t n) const {
    const int32_t ring = int32_t(p_.ring), last = kInt32Max / ring, rest = kInt32Max % ring;
    by_ring_.divide(work(0), phases(), starts(), work(1), n);
    at_least(bases(), slots(), int32_t(0), n);
    at_most(bases(), bases(), last, n);
    subtract(work(0), slots(), bases(), n);  // -1 below 0, above 0 past L
    at_most(work(0), work(0), int32_t(1), n);
    multiply(work(0), work(0), work(0), n);
    multiply(limits(), bases(), int32_t(-1), n);
    add(limits(), limits(), last, n);
    is_positive(limits(), limits(), n);
    multiply(limits(), limits(), ring - 1 - rest, n);
    add(limits(), limits(), rest, n);
    multiply(work(0), work(0), -ring, n);
    add(limits(), limits(), work(0), n);
    multiply(bases(), bases(), ring, n);
  }

  __aicore__ inline bool make_rows(int32_t x, uint32_t width) {
    return paged() ? make_mapped(x, width) : make_rings(x);
  }

  __aicore__ inline bool make_rings(int32_t x) const {
    const uint32_t n = requests_ * pitch_;
    const int64_t ahead = (p_.window + p_.ring - 1) / p_.ring * p_.ring - p_.window;  // keeps what is divided >= 0
    gather(work(0), begins(), owner(), 0, n);
    subtract(work(0), column(), work(0), n);
    gather(work(1), ends(), owner(), 0, n);
    subtract(work(1), work(1), column(), n);
    add(work(0), work(0), x, n);
    add(work(1), work(1), -1 - x, n);
    smaller(work(0), work(0), work(1), n);
    gather(work(1), phases(), owner(), 0, n);
    add(work(1), work(1), column(), n);
    add(work(1), work(1), int32_t(ahead + x), n);
    by_ring_.divide(work(2), rows(), work(1), work(3), n);
    gather(work(1), limits(), owner(), 0, n);
    subtract(work(1), work(1), rows(), n);
    smaller(work(0), work(0), work(1), n);
    is_natural(work(0), work(0), n);
    gather(work(1), bases(), owner(), 0, n);
    add(rows(), rows(), work(1), n);
    choose(rows(), rows(), work(0), p_.dummy_row, n);
    return true;
  }

  // False, and nothing written, where a row may exceed int32.
  __aicore__ inline bool make_mapped(int32_t x, uint32_t width) const {
    const uint32_t n = requests_ * pitch_;
    const Ints map = slot(kNarrow);
    load_tokens(x, width, n);
    load_map(x, width, n);
    read_missed(n);
    to_float(arena_.slot(kWork), map, n);
    const float rough = reduce<Reduction::max>(arena_, arena_.slot(kWork), n);
    if (rough > float(kMost) || (int64_t(rough) + 64) / p_.swa_page * p_.ring > kInt32Max - p_.ring) return false;
    at_least(work(0), map, int32_t(0), n);
    by_page_.divide(rows(), work(1), work(0), work(2), n);
    by_ring_.divide(work(1), work(3), work(0), work(2), n);
    multiply(rows(), rows(), int32_t(p_.ring), n);
    add(rows(), rows(), work(3), n);
    is_natural(work(0), map, n);
    choose(rows(), rows(), work(0), p_.dummy_row, n);
    return true;
  }

  // Columns of the window, of request i, that have a token: [begin, end).
  __aicore__ inline Share tokens_of(uint32_t i, int64_t x, uint32_t width) const {
    const int64_t slot = slots().GetValue(i), past = p_.max_context - starts().GetValue(i) + p_.window;
    if (slot < 0 || slot >= p_.slots) return {0, 0};
    return {max64(begins().GetValue(i) - x, 0), min64(min64(ends().GetValue(i), past) - x, width)};
  }

  // Tokens of the elements, -1 where there is none.
  __aicore__ inline void load_tokens(int32_t x, uint32_t width, uint32_t n) const {
    fill(slot(kTokens), int32_t(-1), n);
    sync<HardEvent::V_MTE2>();
    sync<HardEvent::V_S>();
    for (uint32_t i = 0; i < requests_; ++i) {
      const Share c = tokens_of(i, x, width);
      if (c.begin >= c.end) continue;
      const int64_t position = starts().GetValue(i) - p_.window + x + c.begin;
      const uint64_t from = uint64_t(slots().GetValue(i) * p_.max_context + position);
      load_columns(slot(kTokens)[i * pitch_], uint32_t(c.begin), global<int32_t>(p_.req_to_token)[from],
                   uint32_t(c.end - c.begin), -1);
    }
    sync<HardEvent::MTE2_S>();
    sync<HardEvent::MTE2_V>();
  }

  // The map from each request's first token on, as if the others followed it; -1 where it is not known.
  __aicore__ inline void load_map(int32_t x, uint32_t width, uint32_t n) const {
    const uint32_t words = p_.full_to_swa.is_int64 ? 2 : 1;
    const Ints to = slot(words == 2 ? kWide : kNarrow);
    fill(to, int32_t(-1), n * words);
    fill(anchors(), int32_t(-kMost), requests_);
    sync<HardEvent::V_MTE2>();
    sync<HardEvent::V_S>();
    for (uint32_t i = 0; i < requests_; ++i) {
      const Share c = tokens_of(i, x, width);
      if (c.begin >= c.end) continue;
      const int64_t token = slot(kTokens).GetValue(i * pitch_ + uint32_t(c.begin));
      if (token < 0 || token >= p_.tokens) continue;
      anchors().SetValue(i, int32_t(token - c.begin));
      const uint32_t count = uint32_t(min64(c.end - c.begin, p_.tokens - token));
      load_columns(to[i * pitch_ * words], uint32_t(c.begin) * words,
                   global<int32_t>(p_.full_to_swa.data)[uint64_t(token * words)], count * words, -1);
    }
    sync<HardEvent::S_V>();
    sync<HardEvent::MTE2_V>();
    if (words == 1) return;
    in_order();
    AscendC::Cast(slot(kNarrow), to.ReinterpretCast<int64_t>(), AscendC::RoundMode::CAST_NONE, n);
  }

  // Looks up the tokens that do not follow the first one of their request; one outside the map has no row.
  __aicore__ inline void read_missed(uint32_t n) const {
    const Ints token = slot(kTokens), inside = work(0), missed = work(1), map = slot(kNarrow);
    at_least(token, token, int32_t(-1), n);
    at_most(token, token, int32_t(p_.tokens), n);
    multiply(inside, token, int32_t(-1), n);
    add(inside, inside, int32_t(p_.tokens - 1), n);
    smaller(inside, inside, token, n);
    is_natural(inside, inside, n);
    gather(missed, anchors(), owner(), 0, n);
    add(missed, missed, column(), n);
    subtract(missed, token, missed, n);
    multiply(missed, missed, inside, n);
    choose(map, map, inside, -1, n);
    in_order();
    AscendC::CompareScalar(arena_.mask(), missed, int32_t(0), AscendC::CMPMODE::EQ, round_up(n, kLanes));
    sync<HardEvent::V_S>();
    const Local<uint64_t> words = arena_.mask().ReinterpretCast<uint64_t>();
    for (uint32_t at = 0; at < n; at += 64) {
      uint64_t bits = ~words.GetValue(at / 64);
      for (uint32_t e = at; bits && e < n; ++e, bits >>= 1)
        if (bits & 1) map.SetValue(e, int32_t(clamp64(index_at(p_.full_to_swa, token.GetValue(e)), -1, kInt32Max)));
    }
    sync<HardEvent::S_V>();
  }

  __aicore__ inline int32_t row_of(int64_t group, int64_t phase) const {
    if (group < 0 || group > kInt32Max) return p_.dummy_row;
    const int64_t row = group * p_.ring + phase;
    return row <= kInt32Max ? int32_t(row) : p_.dummy_row;
  }

  __aicore__ inline int32_t element(uint32_t i, int64_t c) const {
    if (c < begins().GetValue(i) || c >= ends().GetValue(i)) return p_.dummy_row;
    const int64_t position = starts().GetValue(i) - p_.window + c, slot = index_at(p_.request_slot, first_ + i);
    if (!paged()) return row_of(slot, position % p_.ring);
    if (slot < 0 || slot >= p_.slots || position >= p_.max_context) return p_.dummy_row;
    const int64_t token = global<int32_t>(p_.req_to_token).GetValue(uint64_t(slot * p_.max_context + position));
    if (token < 0 || token >= p_.tokens) return p_.dummy_row;
    const int64_t w = index_at(p_.full_to_swa, token);
    return w < 0 ? p_.dummy_row : row_of(w / p_.swa_page, w % p_.ring);
  }

  __aicore__ inline void make_by_scalar(int64_t x, uint32_t width) const {
    sync<HardEvent::V_S>();
    for (uint32_t i = 0; i < requests_; ++i)
      for (uint32_t c = 0; c < width; ++c) rows().SetValue(i * pitch_ + c, element(i, x + c));
    sync<HardEvent::S_MTE3>();
  }

  const StateRowsParams& p_;
  Arena arena_;
  int64_t columns_, first_ = 0;
  Divisor by_ring_, by_page_;
  Share share_;
  bool small_;
  uint32_t window_, pitch_, most_, requests_ = 0;
};

__aicore__ inline void state_rows(const StateRowsParams& p) { StateRows(p).run(); }

}  // namespace dspark::ascend
