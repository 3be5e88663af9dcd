// Rows of the explicit form: int32[B, window + width].
//
// A tile of requests is one vector: words per request are computed once, then spread to every column by Gather. The
// columns that have a row are an interval: two differences, a minimum and a clamp. A row of the ring is a remainder,
// three instructions for a power of two. Requests are shared out over the cores by eights, whose rows fill whole
// 32-byte blocks: 92 instructions and no scalar access for eight requests of 136 columns. A loop over requests would
// save the five Gathers and need a dozen instructions for each request.
//
// With token maps (C4) the tokens of a request come by one copy. Tokens of a page lie one after the other, so a second
// copy takes as many entries of full_to_swa from the first token's on; what the vector unit finds not to be where that
// copy looked is read by the scalar unit: one request in eight has some, at a page of 128 and 16 columns. 80
// instructions and 63 scalar reads for eight requests.
// Rings and maps beyond 2^29, rings of one row, and maps whose rows may exceed int32 are left to the scalar unit.
#pragma once
#include "ascend/state_tile.h"

namespace dspark::ascend {

class StateRows : StateTile {
 public:
  __aicore__ inline explicit StateRows(const StateRowsParams& p) : StateTile(p) {}

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
    return {max64(begins().GetValue(i) - x, 0), min64(ends().GetValue(i) - x, width)};
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

};

__aicore__ inline void state_rows(const StateRowsParams& p) { StateRows(p).run(); }

}  // namespace dspark::ascend
