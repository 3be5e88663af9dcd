// The entries that a step completes, of one or two ratios: position, query row and slot of each.
//
// As in ragged_layout, entries are shared out over the cores (the two ratios over every other one), each core sums the
// counts for itself and bisects. Divisions by ratio and page size are shifts where they are powers of two. A page id is
// anywhere in a table of megabytes, so each request with entries here costs one small copy and three scalar accesses;
// they are issued together and waited for once. Loading whole rows of the table would move a thousand ids a request.
//
// The vector unit serves what steps have: positions up to 2^30, rows and entries up to 2^29, slots that fit int32. A
// piece beyond that is written by the scalar unit in 64 bits, entry by entry.
#pragma once
#include "ascend/owners.h"

namespace dspark::ascend {

class CompressorTable {
 public:
  __aicore__ inline CompressorTable(const Arena& arena, const CompressorLayoutParams& p, const CompressorTableParams& t,
                                    int64_t part, int64_t parts, bool writes_requests)
      : arena_(arena), p_(p), t_(t), sums_(arena, kSums, kSumsSpare), owners_(arena, sums_), by_ratio_(t.ratio),
        by_page_(t.page_size), is_first_(part == 0), writes_requests_(writes_requests) {
    const bool aligned = is_aligned(t.rope_position) && is_aligned(t.query_row) && is_aligned(t.slot.data);
    share_ = share_of(t.capacity, kLanes, part, parts, aligned);
    pad_fits_ = t.pad_slot == int32_t(t.pad_slot);
    small_ = p.rows <= kMost && t.capacity * t.ratio <= kMost && pad_fits_;
  }

  __aicore__ inline void run() {
    if (is_first_) write_zero();
    for (chunk_ = 0; chunk_ < p_.batch && (is_first_ || sums_.total() < share_.end); chunk_ += kChunk) {
      requests_ = uint32_t(min64(kChunk, p_.batch - chunk_));
      read_chunk();
      const int64_t end = min64(sums_.total(), share_.end);
      for (int64_t c = max64(sums_.before(), share_.begin); c < end; c += kPiece)
        write_entries(c, uint32_t(min64(kPiece, end - c)));
    }
    write_padding(max64(sums_.total(), share_.begin));
  }

 private:
  static constexpr uint32_t kWork = 0, kStarts = 6, kOut = 7, kCorners = 8, kIds = 9, kNarrow = 10, kVectors = 11;
  static constexpr uint32_t kPiece = kSlot / 8;  // entries: one 32-byte block of page ids for each fits a slot
  static constexpr int64_t kMost = 1 << 29;

  __aicore__ inline Ints slot(uint32_t i) const { return arena_.slot<int32_t>(i); }
  // Per request of the chunk: start, number of the first entry, query row of entry j less j r, where its page ids lie.
  __aicore__ inline Ints starts() const { return slot(kStarts); }
  __aicore__ inline Ints first_entries() const { return slot(kStarts)[kChunk]; }
  __aicore__ inline Ints corners() const { return slot(kCorners); }
  __aicore__ inline Ints bases() const { return slot(kCorners)[kChunk]; }
  // Per entry of the piece.
  __aicore__ inline Ints vector(uint32_t i) const { return slot(kVectors)[i * kPiece]; }
  __aicore__ inline Ints queries() const { return slot(kWork); }
  __aicore__ inline Ints slots() const { return slot(kWork)[kPiece]; }
  __aicore__ inline Ints positions_out() const { return slot(kOut); }
  __aicore__ inline Ints slots_out() const { return t_.slot.is_int64 ? slot(kOut)[kChunk] : slots(); }

  __aicore__ inline void write_zero() const {
    const Ints zero = arena_.small<int32_t>(kWords, 32);
    fill(zero, int32_t(0), 8);
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(t_.offsets), zero, 1);
    sync<HardEvent::MTE3_V>();
  }

  // Counts floor((s + u) / r) - floor(s / r) = floor((s mod r + u) / r), in terms that stay below 2^31.
  __aicore__ inline void read_chunk() {
    const uint32_t n = requests_;
    const int32_t ratio = int32_t(t_.ratio);
    const Ints used = slot(kVectors), used_rest = slot(kVectors)[kChunk], start_rest = corners(), rows = slot(kIds);
    load_index(starts(), p_.start_pos, chunk_, n, slot(kOut));
    load_words(used, p_.seqused, chunk_, n);
    load_words(rows, p_.cu_seqlens, chunk_, n);
    at_least(starts(), starts(), int32_t(0), n);
    at_least(used, used, int32_t(0), n);
    if (writes_requests_) write_requests(used);
    by_ratio_.divide(first_entries(), start_rest, starts(), slot(kNarrow), n);
    by_ratio_.divide(sums_.lengths(), used_rest, used, slot(kNarrow), n);
    add(used_rest, used_rest, start_rest, n);
    add(used_rest, used_rest, 1 - ratio, n);
    is_positive(used_rest, used_rest, n);
    add(sums_.lengths(), sums_.lengths(), used_rest, n);
    // Beyond 2^29 either way no entry has a row, with or without the clamp.
    at_least(rows, rows, -int32_t(kMost), n);
    at_most(rows, rows, int32_t(kMost), n);
    subtract(corners(), rows, start_rest, n);
    add(corners(), corners(), ratio - 1, n);
    to_float(arena_.slot(kNarrow), starts(), n);
    simple_ = small_ && reduce<Reduction::max>(arena_, arena_.slot(kNarrow), n) <= float(2 * kMost);
    sums_.accumulate(n);
    if (!is_first_) return;
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(t_.offsets)[uint64_t(chunk_ + 1)], sums_.ends(), n);
    sync<HardEvent::MTE3_V>();
  }

  __aicore__ inline void write_requests(const Ints& used) const {
    const Ints kv = slot(kNarrow);
    add_saturated(kv, starts(), used, requests_);
    if (p_.clamp_seqused_kv) at_least(kv, kv, int32_t(1), requests_);
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(p_.start_pos_out)[uint64_t(chunk_)], starts(), requests_);
    store(global<int32_t>(p_.seqused_out)[uint64_t(chunk_)], used, requests_);
    store(global<int32_t>(p_.seqused_kv)[uint64_t(chunk_)], kv, requests_);
    sync<HardEvent::MTE3_V>();
  }

  __aicore__ inline void write_entries(int64_t c, uint32_t n) {
    owners_.find(c, n, requests_);
    if (!simple_ || !make_entries(c, n)) make_by_scalar(n);
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(t_.query_row)[uint64_t(c)], queries(), n);
    write_wide(c, n, positions_out(), slots_out());
    sync<HardEvent::MTE3_V>();
    sync<HardEvent::MTE3_S>();
  }
  __aicore__ inline void write_wide(int64_t c, uint32_t n, const Ints& positions, const Ints& slots) const {
    const uint32_t width = t_.slot.is_int64 ? 2 : 1;
    store(global<int32_t>(t_.rope_position)[uint64_t(2 * c)], positions, 2 * n);
    store(global<int32_t>(t_.slot.data)[uint64_t(width * c)], slots, width * n);
  }

  // False, and nothing written, where a slot may exceed int32.
  __aicore__ inline bool make_entries(int64_t c, uint32_t n) {
    const int32_t ratio = int32_t(t_.ratio), pages = int32_t(min64(t_.pages, kInt32Max));
    const Ints entry = vector(0), page = vector(1), within = vector(2), valid = vector(3), inside = vector(4),
               id = vector(5), scratch = vector(6);
    gather(entry, first_entries(), owners_.owner(), 0, n);
    add(entry, entry, owners_.offset(), n);
    by_page_.divide(page, within, entry, scratch, n);
    multiply(queries(), owners_.offset(), ratio, n);
    gather(scratch, corners(), owners_.owner(), 0, n);
    add(queries(), queries(), scratch, n);
    multiply(scratch, queries(), int32_t(-1), n);
    add(scratch, scratch, int32_t(p_.rows - 1), n);
    smaller(scratch, scratch, queries(), n);
    is_natural(valid, scratch, n);
    multiply(inside, page, int32_t(-1), n);
    add(inside, inside, pages - 1, n);
    is_natural(inside, inside, n);
    multiply(inside, inside, valid, n);
    gather_ids(c, n, id, page, inside);
    to_float(scratch.ReinterpretCast<float>(), id, n);
    const float largest = reduce<Reduction::max>(arena_, scratch.ReinterpretCast<float>(), n);
    if (largest * 1.000001f >= float((int64_t(1) << 31) / t_.page_size - 1)) return false;

    multiply(entry, entry, ratio, n);
    multiply(entry, entry, valid, n);
    in_order();
    AscendC::Cast(positions_out().ReinterpretCast<int64_t>(), entry, AscendC::RoundMode::CAST_NONE, n);
    choose(queries(), queries(), valid, -1, n);
    is_natural(inside, id, n);
    multiply(id, id, int32_t(t_.page_size), n);
    add(id, id, within, n);
    choose(slots(), id, inside, int32_t(t_.pad_slot), n);
    if (!t_.slot.is_int64) return true;
    in_order();
    AscendC::Cast(slots_out().ReinterpretCast<int64_t>(), slots(), AscendC::RoundMode::CAST_NONE, n);
    return true;
  }

  // Page ids, saturated to int32; -1 where `inside` is 0.
  __aicore__ inline void gather_ids(int64_t c, uint32_t n, const Ints& id, const Ints& page, const Ints& inside) {
    load_ids(c, n);
    const bool wide = t_.page_table.is_int64;
    if (wide) {
      in_order();
      AscendC::Cast(slot(kNarrow), slot(kIds).ReinterpretCast<int64_t>(), AscendC::RoundMode::CAST_NONE, loaded_);
    }
    const Ints from = arena_.whole_slot<int32_t>(wide ? kNarrow : kIds);
    fill(from, int32_t(-1), 8);
    gather(id, bases(), owners_.owner(), 0, n);
    add(page, page, id, n);
    multiply(page, page, int32_t(4), n);
    add(page, page, int32_t(32), n);
    multiply(page, page, inside, n);
    gather(id, from, page, 0, n);
  }

  // One copy of page ids for each request that has entries among these n, each from the next 32-byte block on.
  __aicore__ inline void load_ids(int64_t c, uint32_t n) {
    sync<HardEvent::V_S>();
    sync<HardEvent::V_MTE2>();
    const uint32_t words = t_.page_table.is_int64 ? 2 : 1, size = uint32_t(t_.page_size);
    const uint32_t last = uint32_t(owners_.owner().GetValue(n - 1)) / 4;
    uint32_t i = uint32_t(owners_.owner().GetValue(0)) / 4;
    int64_t begin = c;
    loaded_ = 0;
    for (int64_t offset = owners_.offset().GetValue(0); i <= last; ++i, offset = 0) {
      const int64_t end = min64(sums_.ends().GetValue(i), c + n);
      if (end <= begin) continue;
      const int64_t entry = first_entries().GetValue(i) + offset;
      const int64_t page = uint32_t(entry) / size, past = min64(uint32_t(entry + end - begin - 1) / size + 1, t_.pages);
      bases().SetValue(i, int32_t(loaded_ - page));
      begin = end;
      if (past <= page) continue;
      const uint64_t from = uint64_t((chunk_ + i) * t_.pages + page) * words;
      load(slot(kIds)[loaded_ * words], global<int32_t>(t_.page_table.data)[from], uint32_t(past - page) * words);
      loaded_ += round_up(past - page, 8 / words);
    }
    sync<HardEvent::MTE2_V>();
    sync<HardEvent::S_V>();
  }

  __aicore__ inline int64_t slot_of(int64_t request, int64_t entry) const {
    const int64_t page = entry / t_.page_size, within = entry % t_.page_size;
    if (page >= t_.pages) return t_.pad_slot;
    const int64_t id = index_at(t_.page_table, request * t_.pages + page);
    const int64_t largest = t_.slot.is_int64 ? int64_t(~uint64_t(0) >> 1) : kInt32Max;
    return id < 0 || id > (largest - within) / t_.page_size ? t_.pad_slot : id * t_.page_size + within;
  }

  __aicore__ inline void make_by_scalar(uint32_t n) const {
    sync<HardEvent::V_S>();
    const Local<int64_t> positions = positions_out().ReinterpretCast<int64_t>();
    for (uint32_t e = 0; e < n; ++e) {
      const uint32_t i = uint32_t(owners_.owner().GetValue(e)) / 4;
      const int64_t start = starts().GetValue(i), entry = start / t_.ratio + owners_.offset().GetValue(e);
      int64_t row = global<int32_t>(p_.cu_seqlens).GetValue(uint64_t(chunk_ + i)) + (entry + 1) * t_.ratio - 1 - start;
      if (row >= p_.rows || row < 0) row = -1;
      positions.SetValue(e, row < 0 ? 0 : entry * t_.ratio);
      queries().SetValue(e, int32_t(row));
      const int64_t slot = row < 0 ? t_.pad_slot : slot_of(chunk_ + i, entry);
      if (t_.slot.is_int64) slots_out().ReinterpretCast<int64_t>().SetValue(e, slot);
      else slots_out().SetValue(e, int32_t(slot));
    }
    sync<HardEvent::S_MTE3>();
  }

  __aicore__ inline void write_padding(int64_t begin) const {
    if (begin >= share_.end) return;
    const Ints zero = slot(kOut), none = slot(kIds), pad = slot(kNarrow), wide = slot(kVectors);
    fill(zero, int32_t(0), kSlot);
    fill(none, int32_t(-1), kChunk);
    fill(pad, int32_t(t_.pad_slot), kChunk);
    in_order();
    AscendC::Cast(wide.ReinterpretCast<int64_t>(), pad, AscendC::RoundMode::CAST_NONE, kChunk);
    if (!pad_fits_) {
      sync<HardEvent::V_S>();
      for (uint32_t e = 0; e < kChunk; ++e) wide.ReinterpretCast<int64_t>().SetValue(e, t_.pad_slot);
      sync<HardEvent::S_MTE3>();
    }
    sync<HardEvent::V_MTE3>();
    for (int64_t c = begin; c < share_.end; c += kChunk) {
      const uint32_t n = uint32_t(min64(kChunk, share_.end - c));
      store(global<int32_t>(t_.query_row)[uint64_t(c)], none, n);
      write_wide(c, n, zero, t_.slot.is_int64 ? wide : pad);
    }
    sync<HardEvent::MTE3_V>();
  }

  const Arena& arena_;
  const CompressorLayoutParams& p_;
  const CompressorTableParams& t_;
  Sums sums_;
  Owners owners_;
  Divisor by_ratio_, by_page_;
  Share share_;
  bool is_first_, writes_requests_, pad_fits_, small_, simple_ = false;
  int64_t chunk_ = 0;
  uint32_t requests_ = 0, loaded_ = 0;
};

__aicore__ inline void compressor_layout(const CompressorLayoutParams& p) {
  Arena arena;
  const int64_t block = AscendC::GetBlockIdx(), blocks = AscendC::GetBlockNum(), tables = p.tables;
  for (int64_t k = 0; k < tables; ++k) {
    if (blocks < tables) {
      if (block == 0) CompressorTable(arena, p, p.table[k], 0, 1, k == 0).run();
    } else if (block % tables == k) {
      CompressorTable(arena, p, p.table[k], block / tables, (blocks - k + tables - 1) / tables, block == 0).run();
    }
  }
}

}  // namespace dspark::ascend
