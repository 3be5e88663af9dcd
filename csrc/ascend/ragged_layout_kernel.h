// Every row's request, offset, position and token.
//
// Rows are shared out in 256-byte pieces over the cores; each sums all lengths, then finds the owners of its rows by
// bisection (owners.h) and gathers what belongs to them: some 100 instructions a core for 256 rows and 256 requests, a
// third of them for tokens. What is per request (cu_seqlens, KV lengths) is written by the first core.
//
// int64 values are pairs of words: tokens are gathered as two words and interleaved by one more Gather. A position fits
// int32 on real input and is widened by Cast; else the scalar unit adds it, row by row.
//
// Drafts come in as one copy of the requests concerned, verified or not: at most N rows each. A copy per request would
// move less and cost each of them a scalar access and an instruction. Marking the first row of each request and taking
// a running maximum would save the bisection, but the marks are scalar writes too.
#pragma once
#include "ascend/owners.h"

namespace dspark::ascend {

class RaggedLayout {
 public:
  __aicore__ inline explicit RaggedLayout(const RaggedLayoutParams& p)
      : p_(p), sums_(arena_, kSums, kSumsSpare), cache_sums_(arena_, kCache, kCacheSpare), owners_(arena_, sums_) {
    const bool aligned = is_aligned(p.row_request) && is_aligned(p.row_offset) && is_aligned(p.position) &&
                         is_aligned(p.verify_ids);
    share_ = share_of(p.rows, kLanes, AscendC::GetBlockIdx(), AscendC::GetBlockNum(), aligned);
    is_first_ = AscendC::GetBlockIdx() == 0;
    if (p.verify_ids) make_interleave(slot(kInterleave), slot(kOut), kRows * 4, kRows);
  }

  __aicore__ inline void run() {
    if (is_first_) {
      write_zero(p_.cu_seqlens);
      if (p_.cu_seqlens_k) write_zero(p_.cu_seqlens_k);
    }
    for (chunk_ = 0; chunk_ < p_.batch && (is_first_ || sums_.total() < share_.end); chunk_ += kChunk) {
      requests_ = uint32_t(min64(kChunk, p_.batch - chunk_));
      read_chunk();
      if (is_first_) write_requests();
      const int64_t end = min64(sums_.total(), share_.end);
      for (int64_t row = max64(sums_.before(), share_.begin); row < end; row += kRows)
        write_rows(row, uint32_t(min64(kRows, end - row)));
    }
    write_padding(max64(sums_.total(), share_.begin));
  }

 private:
  static constexpr uint32_t kInterleave = 0, kPrefix = 6, kWide = 7, kRoots = 8, kDrafts = 9, kParts = 10, kOut = 11;
  static constexpr uint32_t kCache = 9, kCacheSpare = 10;  // used before the rows of a chunk
  static constexpr int32_t kSimple = 1 << 30;              // up to here a position needs no 64-bit addition

  __aicore__ inline Ints slot(uint32_t i) const { return arena_.slot<int32_t>(i); }
  __aicore__ inline Ints part(uint32_t i) const { return slot(kParts)[i * kRows]; }  // low words, high words, offsets
  __aicore__ inline Ints requests_out() const { return slot(kOut); }
  __aicore__ inline Ints ids_out() const { return slot(kOut)[kRows]; }
  __aicore__ inline Ints positions_out() const { return slot(kWide); }

  __aicore__ inline void write_zero(int32_t* to) const {
    const Ints zero = arena_.small<int32_t>(kWords, 32);
    fill(zero, int32_t(0), 8);
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(to), zero, 1);
    sync<HardEvent::MTE3_V>();
  }

  __aicore__ inline void read_chunk() {
    const uint32_t n = requests_;
    load_words(sums_.lengths(), p_.verify_lens, chunk_, n);
    at_least(sums_.lengths(), sums_.lengths(), int32_t(0), n);
    if (p_.prefix) load_index(slot(kPrefix), p_.prefix, chunk_, n, slot(kWide));
    if (p_.position)
      simple_ = p_.rows <= kSimple &&
                magnitude(arena_, slot(kPrefix), arena_.slot(kOut), arena_.slot(kParts), n) <= float(kSimple);
    if (is_first_ && p_.prefix) {
      add_saturated(cache_sums_.lengths(), slot(kPrefix), sums_.lengths(), n);
      at_least(cache_sums_.lengths(), cache_sums_.lengths(), int32_t(0), n);
    }
    if (p_.verify_ids) {
      load_words(slot(kRoots), reinterpret_cast<const int32_t*>(p_.root_tokens), 2 * chunk_, 2 * n);
      fill(arena_.whole_slot<int32_t>(kRoots), int32_t(0), 8);
    }
    sums_.accumulate(n);
  }

  __aicore__ inline void write_requests() {
    const uint32_t n = requests_;
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(p_.cu_seqlens)[uint64_t(chunk_ + 1)], sums_.ends(), n);
    if (p_.cache_seqlens) store(global<int32_t>(p_.cache_seqlens)[uint64_t(chunk_)], cache_sums_.lengths(), n);
    sync<HardEvent::MTE3_V>();
    sync<HardEvent::MTE3_S>();
    if (!p_.cu_seqlens_k) return;
    cache_sums_.accumulate(n);
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(p_.cu_seqlens_k)[uint64_t(chunk_ + 1)], cache_sums_.ends(), n);
    sync<HardEvent::MTE3_V>();
  }

  __aicore__ inline void write_rows(int64_t row, uint32_t n) {
    owners_.find(row, n, requests_);
    shift_right(requests_out(), owners_.owner(), int32_t(2), n);
    add(requests_out(), requests_out(), int32_t(chunk_), n);
    if (p_.position) make_positions(n);
    if (p_.verify_ids) make_ids(n);
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(p_.row_request)[uint64_t(row)], requests_out(), n);
    store(global<int32_t>(p_.row_offset)[uint64_t(row)], owners_.offset(), n);
    if (p_.position) store(global<int32_t>(p_.position)[uint64_t(2 * row)], positions_out(), 2 * n);
    if (p_.verify_ids) store(global<int32_t>(p_.verify_ids)[uint64_t(2 * row)], ids_out(), 2 * n);
    sync<HardEvent::MTE3_V>();
    sync<HardEvent::MTE3_S>();
  }

  __aicore__ inline void make_positions(uint32_t n) {
    const Local<int64_t> to = positions_out().ReinterpretCast<int64_t>();
    if (simple_) {
      gather(part(2), slot(kPrefix), owners_.owner(), 0, n);
      add(part(2), part(2), owners_.offset(), n);
      in_order();
      return AscendC::Cast(to, part(2), AscendC::RoundMode::CAST_NONE, n);
    }
    sync<HardEvent::V_S>();
    for (uint32_t i = 0; i < n; ++i) {
      const int64_t prefix = index_at(p_.prefix, chunk_ + owners_.owner().GetValue(i) / 4);
      to.SetValue(i, int64_t(uint64_t(prefix) + uint64_t(owners_.offset().GetValue(i))));  // wraps
    }
    sync<HardEvent::S_MTE3>();
  }

  // A row takes the root, a draft or nothing; what does not apply is gathered from the zeros before a slot.
  __aicore__ inline void make_ids(uint32_t n) {
    const int32_t gamma = int32_t(p_.gamma);
    const Ints place = sums_.scratch(), drafts = sums_.scratch(kRows), inside = sums_.scratch(2 * kRows);
    at_most(drafts, owners_.offset(), gamma + 1, n);
    add(drafts, drafts, int32_t(-1), n);                 // draft k, -1 for the root, gamma for nothing
    multiply(inside, drafts, int32_t(-1), n);
    is_positive(place, inside, n);
    add(inside, inside, gamma - 1, n);
    smaller(inside, inside, drafts, n);                  // >= 0 where there is a draft
    multiply(part(2), owners_.owner(), int32_t(2), n);
    add(part(2), part(2), int32_t(32), n);
    multiply(place, place, part(2), n);
    take(arena_.whole_slot<int32_t>(kRoots), place, part(0), part(1), n);
    shift_right(place, owners_.owner(), int32_t(2), n);
    multiply(place, place, gamma, n);
    add(place, place, drafts, n);                        // of the draft among those of the chunk
    sync<HardEvent::V_S>();
    const int64_t first = max64(0, place.GetValue(0));
    const int64_t end = min64(int64_t(place.GetValue(n - 1)) + 1, int64_t(requests_) * p_.gamma);
    for (int64_t at = first; at < end; at += kChunk)
      add_drafts(at, uint32_t(min64(kChunk, end - at)), place, inside, n);
    gather(ids_out(), slot(kParts), slot(kInterleave), 0, 2 * n);
  }

  __aicore__ inline void take(const Ints& from, const Ints& place, const Ints& low, const Ints& high,
                              uint32_t n) const {
    gather(low, from, place, 0, n);
    gather(high, from, place, 4, n);
  }

  // Drafts [at, at + count) of the chunk, for the rows that want one of them.
  __aicore__ inline void add_drafts(int64_t at, uint32_t count, const Ints& place, const Ints& inside, uint32_t n) {
    const Ints here = part(2), wanted = ids_out(), high = ids_out()[kRows];
    const int64_t first = 2 * (chunk_ * p_.gamma + at);
    load_words(slot(kDrafts), reinterpret_cast<const int32_t*>(p_.draft_tokens), first, 2 * count);
    fill(arena_.whole_slot<int32_t>(kDrafts), int32_t(0), 8);
    add(here, place, int32_t(-at), n);
    multiply(wanted, here, int32_t(-1), n);
    add(wanted, wanted, int32_t(count) - 1, n);
    smaller(wanted, wanted, here, n);
    smaller(wanted, wanted, inside, n);
    is_natural(wanted, wanted, n);
    multiply(here, here, int32_t(8), n);
    add(here, here, int32_t(32), n);
    multiply(here, here, wanted, n);
    take(arena_.whole_slot<int32_t>(kDrafts), here, wanted, high, n);
    add(part(0), part(0), wanted, n);
    add(part(1), part(1), high, n);
  }

  __aicore__ inline void write_padding(int64_t begin) {
    if (begin >= share_.end) return;
    const Ints zero = slot(kOut), none = slot(kWide);
    fill(zero, int32_t(0), kSlot);
    fill(none, int32_t(-1), kChunk);
    sync<HardEvent::V_MTE3>();
    for (int64_t row = begin; row < share_.end; row += kChunk) {
      const uint32_t n = uint32_t(min64(kChunk, share_.end - row));
      store(global<int32_t>(p_.row_request)[uint64_t(row)], none, n);
      store(global<int32_t>(p_.row_offset)[uint64_t(row)], zero, n);
      if (p_.position) store(global<int32_t>(p_.position)[uint64_t(2 * row)], zero, 2 * n);
      if (p_.verify_ids) store(global<int32_t>(p_.verify_ids)[uint64_t(2 * row)], zero, 2 * n);
    }
  }

  const RaggedLayoutParams& p_;
  Arena arena_;
  Sums sums_, cache_sums_;
  Owners owners_;
  Share share_;
  bool is_first_, simple_ = true;
  int64_t chunk_ = 0;
  uint32_t requests_ = 0;
};

__aicore__ inline void ragged_layout(const RaggedLayoutParams& p) { RaggedLayout(p).run(); }

}  // namespace dspark::ascend
