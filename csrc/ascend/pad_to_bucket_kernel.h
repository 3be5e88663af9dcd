// Lengths of a captured graph's slots: one core, one pass for the sum, one to write. 13 instructions, one scalar read
// and four copies out for any batch up to 3584; the shares of the padding slots follow from the sum alone.
#pragma once
#include "ascend/integers.h"

namespace dspark::ascend {

class PadToBucket {
 public:
  __aicore__ inline explicit PadToBucket(const PadToBucketParams& p)
      : p_(p), cap_(p.cap < 0 ? kInt32Max : int32_t(min64(p.cap, kInt32Max))) {}

  __aicore__ inline void run() {
    const int64_t slack = max64(p_.rows - sum_lengths(), 0), padding = p_.slots - p_.batch;
    for (int64_t i = 0; i < p_.batch; i += kSlot) write_requests(i, padding == 0 ? slack : 0);
    if (padding > 0) write_padding(int32_t(slack / padding), slack % padding);
  }

 private:
  __aicore__ inline Ints lengths() const { return arena_.slot<int32_t>(0); }
  __aicore__ inline Ints used() const { return arena_.slot<int32_t>(1); }

  __aicore__ inline uint32_t read(int64_t i) const {
    const uint32_t n = uint32_t(min64(kSlot, p_.batch - i));
    load_words(lengths(), p_.verify_lens, i, n);
    at_least(lengths(), lengths(), int32_t(0), n);
    return n;
  }

  // Exact: by the vector unit while a float holds the sum, which real lengths allow.
  __aicore__ inline int64_t sum_lengths() const {
    int64_t total = 0;
    for (int64_t i = 0; i < p_.batch; i += kSlot) {
      const uint32_t n = read(i);
      to_float(arena_.slot(1), lengths(), n);
      const float rough = reduce<Reduction::sum>(arena_, arena_.slot(1), n);
      if (rough < 16000000.0f) total += int64_t(rough);
      else for (uint32_t j = 0; j < n; ++j) total += lengths().GetValue(j);
    }
    return total;
  }

  // `extra` goes to the last request.
  __aicore__ inline void write_requests(int64_t i, int64_t extra) const {
    const uint32_t n = p_.batch <= int64_t(kSlot) ? uint32_t(p_.batch) : read(i);  // one piece is still there
    at_most(used(), lengths(), cap_, n);
    if (extra > 0 && i + n == p_.batch) {
      sync<HardEvent::V_S>();
      lengths().SetValue(n - 1, int32_t(lengths().GetValue(n - 1) + extra));  // at most `rows`
      sync<HardEvent::S_V>();
    }
    at_most(lengths(), lengths(), cap_, n);
    write(i, n);
  }

  // The first `rest` slots of padding take one row more than the others.
  __aicore__ inline void write_padding(int32_t share, int64_t rest) const {
    for (int64_t j = 0; j < p_.slots - p_.batch; j += kSlot) {
      const uint32_t n = uint32_t(min64(kSlot, p_.slots - p_.batch - j));
      count_up(lengths(), 0, n);
      multiply(lengths(), lengths(), int32_t(-1), n);
      add(lengths(), lengths(), int32_t(clamp64(rest - j, 0, kSlot)), n);
      is_positive(lengths(), lengths(), n);
      add(lengths(), lengths(), share, n);
      at_most(lengths(), lengths(), cap_, n);
      fill(used(), int32_t(0), n);
      write(p_.batch + j, n);
    }
  }

  __aicore__ inline void write(int64_t i, uint32_t n) const {
    sync<HardEvent::V_MTE3>();
    store(global<int32_t>(p_.padded)[uint64_t(i)], lengths(), n);
    store(global<int32_t>(p_.seqused)[uint64_t(i)], used(), n);
    sync<HardEvent::MTE3_V>();
  }

  const PadToBucketParams& p_;
  Arena arena_;
  int32_t cap_;
};

__aicore__ inline void pad_to_bucket(const PadToBucketParams& p) {
  if (AscendC::GetBlockIdx() == 0) PadToBucket(p).run();
}

}  // namespace dspark::ascend
