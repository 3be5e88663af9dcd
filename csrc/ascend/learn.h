// How offsets learn from a tile of requests (common/offset.h), a lane per request: the sum over drafts runs left to
// right in every lane, and each product and sum is an instruction of its own, so nothing is fused.
// Bytes: confidences once; offsets of slots in 4-byte copies, those that are not asked for untouched.
#pragma once
#include "ascend/requests.h"

namespace dspark::ascend {

constexpr uint32_t kLearnDrafts = 64;  // confidences of a request that are in the buffer at once
constexpr uint32_t kLearnMask = kTileLanes * kLearnDrafts / 8;
constexpr uint32_t kLearnBytes = kTileLanes * (kLearnDrafts * 4 + 2 * 32 + 8 + 9 * 4) + kLearnMask;

class Learner {
 public:
  template <uint32_t bytes>
  __aicore__ inline Learner(Fields<bytes>& fields, const LearningParams& p, int64_t gamma)
      : p_(p),
        gamma_(gamma),
        confidence_(fields.template take<float>(kTileLanes * kLearnDrafts)),
        spread_(fields.template take<float>(kTileLanes * 8)),
        indices_(fields.template take<int32_t>(kTileLanes * 8)),
        slots_(fields.template take<int64_t>(kTileLanes), p.slots.is_int64),
        mask_(fields.template take<uint8_t>(kLearnMask)) {
    for (Local<float>& lane : lanes_) lane = fields.template take<float>(kTileLanes);
  }

  // verify_lens and correct: the first as given, the second in [0, G], both ready for the vector unit.
  __aicore__ inline void run(const RequestTile& tile, const Local<int32_t>& verify_lens,
                             const Local<int32_t>& correct) {
    load_offsets(tile, verify_lens);
    count_observed(verify_lens, correct);
    sum_errors(tile);
    step();
    store_offsets(tile, verify_lens);
  }

 private:
  enum Lane { kOffset, kLength, kCorrect, kObserved, kError, kTerm, kFlag, kOnes, kColumn, kLanesUsed };
  __aicore__ inline const Local<float>& lane(Lane i) const { return lanes_[i]; }
  __aicore__ inline Local<int32_t> words(Lane i) const { return lanes_[i].template ReinterpretCast<int32_t>(); }

  // to = from where x `mode` value, else `otherwise`; in every lane.
  __aicore__ inline void pick(const Local<float>& to, const Local<float>& from, const Local<float>& x,
                              AscendC::CMPMODE mode, float value, float otherwise) const {
    compare(mask_, x, mode, value, kTileLanes);
    select(to, mask_, from, otherwise, kTileLanes);
  }
  // NaN to 0; n is a multiple of 64.
  __aicore__ inline void clear_nan(const Local<float>& x, uint32_t n) const {
    in_order();
    AscendC::Compare(mask_, x, x, AscendC::CMPMODE::EQ, n);
    select(x, mask_, x, 0.0f, n);
  }

  // The slot of request i if it learns, else -1.
  __aicore__ inline int64_t slot_of(const Local<int32_t>& verify_lens, uint32_t i) const {
    const int64_t slot = verify_lens.GetValue(i) > 0 ? slots_.get(i) : -1;
    return slot < p_.num_slots ? slot : -1;
  }

  __aicore__ inline void load_offsets(const RequestTile& tile, const Local<int32_t>& verify_lens) const {
    const Global<float> offset = global<float>(p_.offset);
    if (!p_.slots) {
      load(lane(kOffset), offset[uint64_t(tile.first)], tile.count);
      sync<HardEvent::MTE2_V>();
      return;
    }
    slots_.load_from(p_.slots.data, tile);
    sync<HardEvent::MTE2_S>();
    for (uint32_t i = 0; i < tile.count; ++i) {
      const int64_t slot = slot_of(verify_lens, i);
      if (slot >= 0) load(spread_[i * 8], offset[uint64_t(slot)], 1);
    }
    sync<HardEvent::MTE2_V>();
    make_offsets(indices_, kTileLanes);
    multiply(indices_, indices_, int32_t(8), kTileLanes);  // the copies lie 32 bytes apart
    gather(lane(kOffset), spread_, indices_, 0, kTileLanes);
  }

  // Lengths as floats (at most 2^18, exact), l clamped; observed = min(correct + 1, l - 1).
  __aicore__ inline void count_observed(const Local<int32_t>& verify_lens, const Local<int32_t>& correct) const {
    at_least(words(kLength), verify_lens, int32_t(0), kTileLanes);
    at_most(words(kLength), words(kLength), int32_t(gamma_ + 1), kTileLanes);
    to_float(lane(kLength), words(kLength), kTileLanes);
    to_float(lane(kCorrect), correct, kTileLanes);
    add(lane(kObserved), lane(kLength), -1.0f, kTileLanes);
    add(lane(kTerm), lane(kCorrect), 1.0f, kTileLanes);
    smaller(lane(kObserved), lane(kObserved), lane(kTerm), kTileLanes);
  }

  __aicore__ inline void sum_errors(const RequestTile& tile) const {
    const Global<float> confidence = global<float>(p_.confidence);
    fill(lane(kOnes), 1.0f, kTileLanes);
    fill(lane(kError), 0.0f, kTileLanes);
    make_offsets(words(kColumn), kTileLanes);
    multiply(words(kColumn), words(kColumn), int32_t(kLearnDrafts), kTileLanes);
    for (int64_t first = 0; first < gamma_; first += kLearnDrafts) {
      const uint32_t drafts = uint32_t(min64(kLearnDrafts, gamma_ - first)), n = tile.count * kLearnDrafts;
      const Global<float> rows = confidence[uint64_t(tile.first * gamma_ + first)];
      load_rows(confidence_, rows, tile.count, drafts, gamma_, kLearnDrafts);
      sync<HardEvent::MTE2_V>();
      clear_nan(confidence_, n);
      at_least(confidence_, confidence_, 0.0f, n);
      at_most(confidence_, confidence_, 1.0f, n);
      for (uint32_t k = 0; k < drafts; ++k) add_error(k, float(int32_t(first + k)));
      sync<HardEvent::V_MTE2>();
    }
  }
  // error += y_k - c_k where draft k was observed.
  __aicore__ inline void add_error(uint32_t column, float k) const {
    gather(lane(kTerm), confidence_, words(kColumn), column * 4, kTileLanes);
    pick(lane(kFlag), lane(kOnes), lane(kCorrect), AscendC::CMPMODE::GT, k, 0.0f);
    subtract(lane(kTerm), lane(kFlag), lane(kTerm), kTileLanes);
    pick(lane(kTerm), lane(kTerm), lane(kObserved), AscendC::CMPMODE::GT, k, 0.0f);
    add(lane(kError), lane(kError), lane(kTerm), kTileLanes);
  }

  // offset <- clamp(decay * offset + eta * error) where l > 0. By comparison: the bits of a -0 at the limit 0 stay.
  __aicore__ inline void step() const {
    const Local<float> next = lane(kTerm);
    multiply(next, lane(kOffset), p_.decay, kTileLanes);
    clear_nan(next, kTileLanes);
    multiply(lane(kError), lane(kError), p_.eta, kTileLanes);
    add(next, next, lane(kError), kTileLanes);
    pick(next, next, next, AscendC::CMPMODE::LE, p_.limit, p_.limit);
    pick(next, next, next, AscendC::CMPMODE::GE, -p_.limit, -p_.limit);
    in_order();
    AscendC::CompareScalar(mask_, lane(kLength), 0.0f, AscendC::CMPMODE::GT, kTileLanes);
    in_order();
    AscendC::Select(lane(kOffset), mask_, next, lane(kOffset), AscendC::SELMODE::VSEL_TENSOR_TENSOR_MODE, kTileLanes);
  }

  __aicore__ inline void store_offsets(const RequestTile& tile, const Local<int32_t>& verify_lens) const {
    const Global<float> offset = global<float>(p_.offset);
    if (!p_.slots) {
      sync<HardEvent::V_MTE3>();
      store(offset[uint64_t(tile.first)], lane(kOffset), tile.count);
      return;
    }
    // Each lane to a 32-byte block of its own, where a copy out may begin.
    const uint32_t n = kTileLanes * 8;
    count_up(indices_, 0, n);
    in_order();
    AscendC::ShiftRight(indices_, indices_, int32_t(3), int32_t(n));
    multiply(indices_, indices_, int32_t(4), n);
    gather(spread_, lane(kOffset), indices_, 0, n);
    sync<HardEvent::V_MTE3>();
    for (uint32_t i = 0; i < tile.count; ++i) {
      const int64_t slot = slot_of(verify_lens, i);
      if (slot >= 0) store(offset[uint64_t(slot)], spread_[i * 8], 1);
    }
  }

  const LearningParams& p_;
  const int64_t gamma_;
  Local<float> confidence_, spread_, lanes_[kLanesUsed];
  Local<int32_t> indices_;
  IndexField slots_;
  Local<uint8_t> mask_;
};

}  // namespace dspark::ascend
