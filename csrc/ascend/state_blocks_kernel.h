// The block table with every id zeroed that the step neither reads nor writes.
//
// Of some thousand ids a request a step keeps one to three: rows are made of zeros, the kept ids are copied over them,
// one copy and two scalar reads a request, and whole rows go out together. The table is not read otherwise, and nothing
// is masked: where the kept part starts inside a 32-byte block, the copy itself pads with zeros. Requests are shared
// out over the cores by eights, whose rows fill whole 32-byte blocks.
#pragma once
#include "ascend/integers.h"

namespace dspark::ascend {

class StateBlocks {
 public:
  __aicore__ inline explicit StateBlocks(const StateBlocksParams& p)
      : p_(p), words_(p.id_bytes / 4), width_(p.blocks * words_) {}

  __aicore__ inline void run() {
    const Share share =
        share_of(p_.batch, 8, AscendC::GetBlockIdx(), AscendC::GetBlockNum(), is_aligned(p_.state_blocks));
    const int64_t window = min64(width_, kRoom), fit = kRoom / round_up(max64(window, 1), 8);
    const int64_t most = min64(fit, kSlot / 2);
    if (width_ == 0) return;
    for (int64_t i = share.begin; i < share.end; i += most) {
      const uint32_t n = uint32_t(min64(most, share.end - i));
      load_index(starts(), p_.start_pos, i, n, rows());
      load_words(used(), p_.seqused, i, n);
      at_least(starts(), starts(), int32_t(0), n);
      at_least(used(), used(), int32_t(0), n);
      sync<HardEvent::V_S>();
      for (int64_t x = 0; x < width_; x += window) write_rows(i, n, x, uint32_t(min64(window, width_ - x)));
    }
  }

 private:
  static constexpr int64_t kRoom = int64_t(kSlots - 1) * kSlot;  // words of rows
  __aicore__ inline Ints starts() const { return arena_.slot<int32_t>(0); }
  __aicore__ inline Ints used() const { return arena_.slot<int32_t>(0)[kSlot / 2]; }
  __aicore__ inline Ints rows() const { return arena_.pairs(1, kSlots - 1).ReinterpretCast<int32_t>(); }

  // Columns [x, x + width) of n rows, in words.
  __aicore__ inline void write_rows(int64_t first, uint32_t n, int64_t x, uint32_t width) const {
    const uint32_t pitch = round_up(width, 8);
    const Global<int32_t> table = global<int32_t>(p_.block_table), to = global<int32_t>(p_.state_blocks);
    fill(rows(), int32_t(0), n * pitch);
    sync<HardEvent::V_MTE2>();
    for (uint32_t i = 0; i < n; ++i) {
      const Share kept = kept_blocks(starts().GetValue(i), used().GetValue(i));
      const int64_t begin = max64(x, kept.begin * words_), end = min64(x + width, kept.end * words_);
      if (begin >= end) continue;
      const uint64_t from = uint64_t((first + i) * width_ + begin);
      load_columns(rows()[i * pitch], uint32_t(begin - x), table[from], uint32_t(end - begin), 0);
    }
    sync<HardEvent::MTE2_MTE3>();
    sync<HardEvent::V_MTE3>();
    store(to[uint64_t(first * width_ + x)], rows(), width, n, width_ - width);
    sync<HardEvent::MTE3_V>();
  }

  __aicore__ inline Share kept_blocks(int64_t start, int64_t used) const {
    if (used == 0) return {0, 0};
    const int64_t kept_from = max64(0, (start / p_.ratio - (p_.coff - 1)) * p_.ratio);
    return {kept_from / p_.block_size, min64((start + used + p_.block_size - 1) / p_.block_size, p_.blocks)};
  }

  const StateBlocksParams& p_;
  Arena arena_;
  int64_t words_, width_;
};

__aicore__ inline void state_blocks(const StateBlocksParams& p) { StateBlocks(p).run(); }

}  // namespace dspark::ascend
