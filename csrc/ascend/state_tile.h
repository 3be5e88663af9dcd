// A tile of requests of state_rows: its shape, what is computed once per request, and the way of the scalar unit.
//
// The element of column c and request i is at i * pitch + c. Everything per request is a vector too, so that a Gather
// by `owner` spreads it over the elements.
#pragma once
#include "ascend/integers.h"

namespace dspark::ascend {

class StateTile {
 protected:
  __aicore__ inline explicit StateTile(const StateRowsParams& p)
      : p_(p), columns_(p.window + p.width), by_ring_(p.ring), by_page_(p.swa_page > 0 ? p.swa_page : 1),
        small_(p.ring <= kMost && p.tokens <= kMost && p.max_context <= kMost && (paged() || p.ring > 1)) {
    const int64_t tile = paged() ? kSlot / 2 : kSlot;  // int64 maps: two words an element
    share_ = share_of(p.batch, 8, AscendC::GetBlockIdx(), AscendC::GetBlockNum(), is_aligned(p.state_rows));
    window_ = uint32_t(min64(columns_, tile));
    pitch_ = round_up(window_, 8);
    most_ = uint32_t(min64(min64(tile / pitch_, kVector), share_.end - share_.begin));
    if (most_ == 0) return;
    count_up(work(0), 0, most_ * pitch_);
    Divisor(pitch_).divide(owner(), column(), work(0), work(1), most_ * pitch_);
    multiply(owner(), owner(), int32_t(4), most_ * pitch_);
  }

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
    if (!small_) return;
    if (paged()) limit_to_tokens(n);
    else place_rings(n);
  }

  // ends = cu[i + 1] - cu[i], of halves because the difference of any two int32 is none, clamped far outside the
  // columns. ShiftRight of an int32 keeps its sign.
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

  // No column past the request's last token, none without a request.
  __aicore__ inline void limit_to_tokens(uint32_t n) const {
    multiply(work(0), starts(), int32_t(-1), n);
    add(work(0), work(0), int32_t(p_.max_context + p_.window), n);
    smaller(ends(), ends(), work(0), n);
    multiply(work(0), slots(), int32_t(-1), n);
    add(work(0), work(0), int32_t(min64(p_.slots, kInt32Max)) - 1, n);
    smaller(work(0), work(0), slots(), n);
    is_natural(work(0), work(0), n);
    multiply(ends(), ends(), work(0), n);
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

}  // namespace dspark::ascend
