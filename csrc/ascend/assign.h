// Lengths and their prefix sum from the cut.
//
// The sorted keys give the cut: the value v of the last admitted candidate. A request's length is its floor plus the
// number of its keys >= v: a comparison, a select and an addition per draft, no Scatter. Only where the cut splits
// equals does the tie rule count (k first, then r): equals are counted per k until the one where they run out, and the
// bits of that one mask tell the request.
#pragma once
#include "ascend/windows.h"

namespace dspark::ascend {

struct Cut {
  float value;
  int64_t last, left;  // ties with k < last are admitted, and `left` of those with k == last, in request order
};

class Assignment {
 public:
  __aicore__ inline Assignment(const Arena& arena, const Rules& rules, const Keys& keys)
      : arena_(arena), rules_(rules), keys_(keys) {}

  // The cut of the best `admitted` candidates, 0 <= admitted <= count; the window that holds it is loaded.
  __aicore__ inline Cut cut_at(const Windows& windows, const Totals& totals, int64_t admitted) {
    if (admitted <= 0) return {2.0f, rules_.gamma, 0};
    if (admitted >= totals.count) return {rules_.survival_eps, rules_.gamma, 0};
    const float value = windows.value(admitted);
    if (windows.drops_after(admitted)) return {value, rules_.gamma, 0};
    return split(value, admitted);
  }

  __aicore__ inline void write(Cut cut, int32_t* lens, int32_t* cu_seqlens) {
    int64_t before = 0;
    if (cu_seqlens) write_zero(cu_seqlens);
    for (int64_t r = 0; r < rules_.batch; r += kSlot) {
      const uint32_t requests = uint32_t(min64(kSlot, rules_.batch - r)), lanes = round_up(requests, kLanes);
      count_piece(cut, r, requests, lanes);
      const Local<int32_t> whole = arena_.slot<int32_t>(6);
      to_int(whole, lengths(), AscendC::RoundMode::CAST_RINT, lanes);
      sync<HardEvent::V_MTE3>();
      store(global<int32_t>(lens)[uint64_t(r)], whole, requests);
      if (cu_seqlens) before = write_offsets(cu_seqlens, r, requests, lanes, before);
      sync<HardEvent::MTE3_V>();
    }
  }

 private:
  __aicore__ inline Local<float> lengths() const { return arena_.slot(3); }
  __aicore__ inline Local<float> ones() const { return arena_.slot(4); }
  __aicore__ inline Local<float> hits() const { return arena_.slot(5); }
  __aicore__ inline Local<int32_t> offsets() const { return arena_.slot<int32_t>(kOffsets); }

  // How many of n keys compare so; their mask stays, and their ones in hits().
  __aicore__ inline int64_t count(const Local<float>& x, AscendC::CMPMODE mode, float value, uint32_t n) {
    mark(x, mode, value, n);
    return sum(arena_, hits(), n);
  }
  __aicore__ inline void mark(const Local<float>& x, AscendC::CMPMODE mode, float value, uint32_t n) {
    compare(arena_.mask(), x, mode, value, n);
    select(hits(), arena_.mask(), ones(), 0.0f, n);
  }

  __aicore__ inline Cut split(float value, int64_t admitted) {
    fill(ones(), 1.0f, kSlot);
    int64_t left = admitted;
    for (int64_t at = 0; at < keys_.size; at += kSlot) {
      const uint32_t n = uint32_t(min64(kSlot, keys_.size - at));
      left -= count(keys_.read(arena_, 7, at, n), AscendC::CMPMODE::GT, value, n);
    }
    for (int64_t k = 0; k < rules_.gamma; ++k) {
      int64_t here = 0;
      for (int64_t r = 0; r < keys_.lanes; r += kSlot) {
        const uint32_t n = uint32_t(min64(kSlot, keys_.lanes - r));
        here += count(keys_.read(arena_, 7, k * keys_.lanes + r, n), AscendC::CMPMODE::EQ, value, n);
      }
      if (here > left) return {value, k, left};
      left -= here;
    }
    return {value, rules_.gamma, 0};
  }

  __aicore__ inline void count_piece(Cut& cut, int64_t r, uint32_t requests, uint32_t lanes) {
    read_caps(arena_, lengths(), arena_.slot<int32_t>(6), rules_, r, requests, lanes);
    at_most(lengths(), lengths(), float(rules_.min_verify_len > 1 ? rules_.min_verify_len : 1), lanes);
    fill(ones(), 1.0f, lanes);
    for (int64_t k = 0; k < rules_.gamma; ++k) {
      const Local<float> x = keys_.read(arena_, 7, k * keys_.lanes + r, lanes);
      mark(x, k < cut.last ? AscendC::CMPMODE::GE : AscendC::CMPMODE::GT, cut.value, lanes);
      add(lengths(), lengths(), hits(), lanes);
      if (k == cut.last && cut.left > 0) admit_first(cut, x, lanes);
    }
  }

  // Admits the first `left` of these equals.
  __aicore__ inline void admit_first(Cut& cut, const Local<float>& x, uint32_t lanes) {
    const int64_t here = count(x, AscendC::CMPMODE::EQ, cut.value, lanes);
    if (here > cut.left) {
      const Local<uint64_t> words = arena_.mask().ReinterpretCast<uint64_t>();
      int64_t left = cut.left, last = -1;
      for (uint32_t word = 0; left > 0; ++word)
        for (uint64_t bits = words.GetValue(word), i = word * 64; bits && left > 0; bits >>= 1, ++i)
          if (bits & 1) {
            --left;
            last = int64_t(i);
          }
      const Local<float> place = arena_.slot(8);
      to_float(place, offsets(), lanes);
      compare(arena_.mask(), place, AscendC::CMPMODE::LE, float(4 * last), lanes);
      select(hits(), arena_.mask(), hits(), 0.0f, lanes);
    }
    cut.left -= min64(here, cut.left);
    add(lengths(), lengths(), hits(), lanes);
  }

  // cu_seqlens of these requests, and the total so far. The lengths are scanned in place, in slot 6.
  __aicore__ inline int64_t write_offsets(int32_t* to, int64_t r, uint32_t requests, uint32_t lanes, int64_t before) {
    sync<HardEvent::MTE3_V>();
    uint32_t slot = 6, spare = 7;
    scan(arena_, slot, spare, offsets(), lanes);
    const Local<int32_t> ends = arena_.slot<int32_t>(slot);
    add(ends, ends, int32_t(before), lanes);
    sync<HardEvent::V_S>();
    const int64_t total = ends.GetValue(requests - 1);
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(to)[uint64_t(r + 1)], ends, requests);
    return total;
  }

  __aicore__ inline void write_zero(int32_t* to) {
    const Local<int32_t> zero = arena_.small<int32_t>(kWords, 32);
    fill(zero, int32_t(0), 8);
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(to), zero, 1);
    sync<HardEvent::MTE3_V>();
  }

  const Arena& arena_;
  const Rules& rules_;
  const Keys& keys_;
};

}  // namespace dspark::ascend
