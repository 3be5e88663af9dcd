// Moving and filling bytes, for the operators that move rows: any dtype, any address, any length.
//
// Cores share the destination, not the requests: each owns one span of its bytes, so a request with all the rows keeps
// them all busy, and a core reads only the offsets of the requests whose rows lie in its span. It meets nobody.
// A copy passes through a bound queue, in by one pipe and out by the other with no vector instruction between; four
// buffers keep 128 KiB in flight, so short rows do not wait for each other either. DataCopyPad takes every address.
// Bytes: each is read once and written once.
#pragma once
#include "ascend/device.h"

namespace dspark::ascend {

constexpr uint32_t kPiece = 32 << 10, kPieces = 4;  // bytes in one copy, copies in flight
constexpr uint32_t kPattern = 16 << 10;             // bytes in one copy of the fill
constexpr int64_t kSpanGrain = 512;                 // spans begin at multiples of it: a transfer's best alignment

// The bytes [begin, end) of the destination that are this core's.
struct Span {
  int64_t begin, end;
};
__aicore__ inline Span my_span(int64_t bytes) {
  const int64_t blocks = AscendC::GetBlockNum(), each = (bytes + blocks - 1) / blocks;
  const int64_t share = (each + kSpanGrain - 1) / kSpanGrain * kSpanGrain;
  const int64_t begin = min64(AscendC::GetBlockIdx() * share, bytes);
  return {begin, min64(begin + share, bytes)};
}

class Mover {
 public:
  __aicore__ inline Mover(const MoveRowsParams& p, Span span)
      : p_(p), span_(span), source_(global<uint8_t>(p.source)), destination_(global<uint8_t>(p.destination)) {
    pipe_.InitBuffer(queue_, kPieces, kPiece);
    pipe_.InitBuffer(pattern_, kPattern);
  }

  // Rows [row, row + count) of the destination, as far as they are this core's: copies of rows from `from` on.
  __aicore__ inline void copy_rows(int64_t from, int64_t row, int64_t count) {
    const int64_t shift = (from - row) * p_.row_bytes;
    const int64_t end = min64(span_.end, (row + count) * p_.row_bytes);
    for (int64_t at = max64(span_.begin, row * p_.row_bytes); at < end; at += kPiece) {
      const uint32_t bytes = uint32_t(min64(kPiece, end - at));
      const Local<uint8_t> empty = queue_.AllocTensor<uint8_t>();
      load(empty, source_[uint64_t(at + shift)], bytes);
      queue_.EnQue(empty);
      Local<uint8_t> full = queue_.DeQue<uint8_t>();
      store(destination_[uint64_t(at)], full, bytes);
      queue_.FreeTensor(full);
    }
  }
  // The same rows, filled. They begin with an element, and so does every span and every copy of the pattern.
  __aicore__ inline void fill_rows(int64_t row, int64_t count) {
    const int64_t end = min64(span_.end, (row + count) * p_.row_bytes);
    for (int64_t at = max64(span_.begin, row * p_.row_bytes); at < end; at += kPattern) {
      if (!has_pattern_) make_pattern();
      store(destination_[uint64_t(at)], pattern_.Get<uint8_t>(), uint32_t(min64(kPattern, end - at)));
    }
  }

 private:
  // 32 bytes by the scalar unit, doubled as far as the span may need: Duplicate knows no element of 8 or 16 bytes.
  __aicore__ inline void make_pattern() {
    const Local<int32_t> words = pattern_.Get<int32_t>();
    for (uint32_t i = 0; i < 8; ++i) {
      uint32_t word = 0;
      for (uint32_t b = 0; b < 4; ++b) {
        const int64_t shift = 8 * ((4 * i + b) & (p_.element_bytes - 1));  // element sizes are powers of two
        word |= uint32_t(uint8_t(p_.fill >> min64(shift, 63))) << (8 * b);
      }
      words.SetValue(i, int32_t(word));
    }
    sync<HardEvent::S_V>();
    const uint32_t needed = uint32_t(min64(kPattern, span_.end - span_.begin));
    for (uint32_t n = 8; n * 4 < needed; n *= 2) copy(words[n], words, n);
    sync<HardEvent::V_MTE3>();
    has_pattern_ = true;
  }

  const MoveRowsParams& p_;
  const Span span_;
  const Global<uint8_t> source_, destination_;
  bool has_pattern_ = false;
  AscendC::TPipe pipe_;
  AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 1> queue_;
  AscendC::TBuf<AscendC::TPosition::VECCALC> pattern_;
};

}  // namespace dspark::ascend
