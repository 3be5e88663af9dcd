// What both acceptance operators do with a tile of requests.
//
// The vector unit compares all draft words of the tile with the target's in one instruction: 32 tokens are 64 words, so
// 64 bits per request, which the scalar unit reads as one integer. It has 4 reads and 7 writes of the buffer for each
// request in all: lengths in the 64-bit arithmetic that the vector unit lacks, and the bonus, written over the drafts
// where they already lie, so that they leave as out_tokens.
// With 31 drafts or fewer (one chunk) every token is read once; beyond, drafts come a second time.
#pragma once
#include "ascend/learn.h"

namespace dspark::ascend {

constexpr uint32_t kChunkTokens = 32;  // tokens of a request that are in the buffer at once
constexpr uint32_t kAcceptBytes = kTileLanes * (2 * kChunkTokens * 8 + 3 * 8 + 5 * 4) + kLearnBytes;

class Acceptance {
 public:
  __aicore__ inline explicit Acceptance(const AcceptParams& p)
      : p_(p),
        width_(p.gamma + 1),
        is_greedy_(!p.raw_correct_len),
        is_short_(p.gamma < kChunkTokens),
        prefix_(fields_.take<int64_t>(kTileLanes), p.prefix.is_int64),
        learner_(fields_, p.learning, p.gamma) {
    drafts_ = fields_.take<int64_t>(kTileLanes * kChunkTokens);
    targets_ = fields_.take<int64_t>(kTileLanes * kChunkTokens);
    bonus_ = fields_.take<int64_t>(kTileLanes);
    equal_ = fields_.take<uint64_t>(kTileLanes);
    verify_lens_ = fields_.take<int32_t>(kTileLanes);
    starts_ = fields_.take<int32_t>(kTileLanes);
    correct_ = fields_.take<int32_t>(kTileLanes);
    trimmed_ = fields_.take<int32_t>(kTileLanes);
    committed_ = fields_.take<int32_t>(kTileLanes);
  }

  __aicore__ inline void run() {
    for (RequestTile tile(p_.batch); tile.count; tile.next()) {
      load_requests(tile);
      if (is_greedy_) match(tile);
      else if (p_.target_tokens && is_short_) load_targets(tile, 0);
      if (!is_greedy_ || !is_short_) load_drafts(tile, 0);  // else the comparison has left them there
      sync<HardEvent::MTE2_S>();
      sync<HardEvent::MTE2_V>();
      for (uint32_t i = 0; i < tile.count; ++i) commit(tile, i);
      store_results(tile);
      store_tokens(tile, 0);
      for (int64_t k = kChunkTokens; k < width_; k += kChunkTokens) write_chunk(tile, k);
      if (!p_.learning.offset) continue;
      sync<HardEvent::S_V>();
      learner_.run(tile, verify_lens_, correct_);
    }
  }

 private:
  __aicore__ inline void load_requests(const RequestTile& tile) const {
    const uint64_t first = uint64_t(tile.first);
    load(verify_lens_, global<int32_t>(p_.verify_lens)[first], tile.count);
    if (!is_greedy_) load(correct_, global<int32_t>(p_.raw_correct_len)[first], tile.count);
    if (p_.cu_seqlens) load(starts_, global<int32_t>(p_.cu_seqlens)[first], tile.count);
    if (p_.bonus_tokens) load(bonus_, global<int64_t>(p_.bonus_tokens)[first], tile.count);
    if (p_.prefix) prefix_.load_from(p_.prefix.data, tile);
    sync<HardEvent::MTE2_S>();
  }

  // Drafts [k, k + 32) of every request.
  __aicore__ inline void load_drafts(const RequestTile& tile, int64_t k) const {
    const uint32_t count = uint32_t(clamp64(p_.gamma - k, 0, kChunkTokens));
    const Global<int64_t> drafts = global<int64_t>(p_.draft_tokens)[uint64_t(tile.first * p_.gamma + k)];
    if (count) load_rows(drafts_, drafts, tile.count, count, p_.gamma, kChunkTokens);
  }

  // The row of the target that belongs to a request's root.
  __aicore__ inline int64_t start_of(const RequestTile& tile, uint32_t i) const {
    return p_.cu_seqlens ? starts_.GetValue(i) : (tile.first + i) * width_;
  }

  // Target rows [k, k + 32) of every request, as far as they exist; none of one that starts before the buffer.
  __aicore__ inline void load_targets(const RequestTile& tile, int64_t k) const {
    const Global<int64_t> target = global<int64_t>(p_.target_tokens);
    const int64_t rows = min64(width_ - k, kChunkTokens);
    if (!p_.cu_seqlens) {
      load_rows(targets_, target[uint64_t(tile.first * width_ + k)], tile.count, uint32_t(rows), width_, kChunkTokens);
      return;
    }
    for (uint32_t i = 0; i < tile.count; ++i) {
      const int64_t start = starts_.GetValue(i), count = start < 0 ? 0 : min64(p_.target_rows - start - k, rows);
      if (count > 0) load(targets_[i * kChunkTokens], target[uint64_t(start + k)], uint32_t(count));
    }
  }

  // Compares drafts with the target. One chunk leaves its bits for commit(), more are counted here.
  __aicore__ inline void match(const RequestTile& tile) const {
    for (int64_t k = 0; k < p_.gamma; k += kChunkTokens) {
      load_drafts(tile, k);
      load_targets(tile, k);
      sync<HardEvent::MTE2_V>();
      in_order();
      AscendC::Compare(equal_.ReinterpretCast<uint8_t>(), drafts_.ReinterpretCast<int32_t>(),
                       targets_.ReinterpretCast<int32_t>(), AscendC::CMPMODE::EQ, tile.count * kChunkTokens * 2);
      sync<HardEvent::V_S>();
      if (is_short_) return;
      for (uint32_t i = 0; i < tile.count; ++i)
        correct_.SetValue(i, int32_t(matched(tile, i, k, k ? correct_.GetValue(i) : 0)));
      sync<HardEvent::V_MTE2>();
    }
  }

  // `raw` accepted drafts before chunk k, with those of the chunk.
  __aicore__ inline int64_t matched(const RequestTile& tile, uint32_t i, int64_t k, int64_t raw) const {
    if (raw < k) return raw;
    // Rows past l - 1, which belong to another request in the compact form, are cut off in commit().
    const int64_t start = start_of(tile, i), present = start < 0 ? 0 : p_.target_rows - start;
    const int64_t stop = min64(min64(p_.gamma, k + kChunkTokens), present);
    for (uint64_t bits = equal_.GetValue(i); raw < stop && (bits & 3) == 3; bits >>= 2) ++raw;
    return raw;
  }

  __aicore__ inline int64_t target_token(const RequestTile& tile, uint32_t i, int64_t row) const {
    const int64_t start = start_of(tile, i), at = start + row;
    if (at < 0 || at >= p_.target_rows) return 0;
    if (is_short_ && start >= 0) return targets_.GetValue(uint32_t(i * kChunkTokens + row));
    return global<int64_t>(p_.target_tokens).GetValue(uint64_t(at));
  }

  // correct_ holds the raw length before, and bonus_ a token that is given.
  __aicore__ inline void commit(const RequestTile& tile, uint32_t i) const {
    const int64_t verify_len = clamp64(verify_lens_.GetValue(i), 0, width_);
    int64_t raw = 0, bonus = 0, correct = 0;
    if (verify_len > 0) {
      raw = is_greedy_ && is_short_ ? matched(tile, i, 0, 0) : clamp64(correct_.GetValue(i), 0, p_.gamma);
      correct = min64(raw, verify_len - 1);
      bonus = p_.bonus_tokens ? bonus_.GetValue(i) : target_token(tile, i, correct);
    }
    const int64_t committed = verify_len > 0 ? correct + 1 : 0;
    correct_.SetValue(i, int32_t(correct));
    trimmed_.SetValue(i, p_.cu_seqlens ? 0 : int32_t(raw - correct));
    bonus_.SetValue(i, bonus);
    committed_.SetValue(i, int32_t(committed));
    if (p_.prefix) prefix_.set(i, saturate32(saturate32(prefix_.get(i)) + committed));
    finish_row(i, 0, committed, bonus);
  }

  // Turns drafts [k, k + 32) into committed tokens.
  __aicore__ inline void finish_row(uint32_t i, int64_t k, int64_t committed, int64_t bonus) const {
    const uint32_t row = i * kChunkTokens;
    const int64_t at = committed - 1 - k, last = p_.gamma - k;
    if (committed == 0) fill(drafts_[row].ReinterpretCast<int32_t>(), int32_t(0), 2 * kChunkTokens);
    else if (last < kChunkTokens && last != at) drafts_.SetValue(uint32_t(row + last), 0);
    if (at >= 0 && at < kChunkTokens) drafts_.SetValue(uint32_t(row + at), bonus);
  }

  __aicore__ inline void store_tokens(const RequestTile& tile, int64_t k) const {
    const Global<int64_t> out = global<int64_t>(p_.out_tokens)[uint64_t(tile.first * width_ + k)];
    sync<HardEvent::S_MTE3>();
    sync<HardEvent::V_MTE3>();
    store_rows(out, drafts_, tile.count, uint32_t(min64(width_ - k, kChunkTokens)), width_, kChunkTokens);
  }
  __aicore__ inline void write_chunk(const RequestTile& tile, int64_t k) const {
    AscendC::PipeBarrier<PIPE_ALL>();
    load_drafts(tile, k);
    sync<HardEvent::MTE2_S>();
    sync<HardEvent::MTE2_V>();
    for (uint32_t i = 0; i < tile.count; ++i) finish_row(i, k, committed_.GetValue(i), bonus_.GetValue(i));
    store_tokens(tile, k);
  }

  __aicore__ inline void store_results(const RequestTile& tile) const {
    const uint64_t first = uint64_t(tile.first);
    sync<HardEvent::S_MTE3>();
    store(global<int32_t>(p_.correct_len)[first], correct_, tile.count);
    store(global<int32_t>(p_.trimmed)[first], trimmed_, tile.count);
    store(global<int64_t>(p_.bonus)[first], bonus_, tile.count);
    store(global<int32_t>(p_.commit_len)[first], committed_, tile.count);
    if (p_.prefix) prefix_.store_to(p_.new_seq_len.data, tile);
  }

  const AcceptParams& p_;
  const int64_t width_;
  const bool is_greedy_, is_short_;  // short: one chunk holds all rows of a request
  Fields<kAcceptBytes> fields_;
  IndexField prefix_;
  Learner learner_;
  Local<int64_t> drafts_, targets_, bonus_;
  Local<uint64_t> equal_;  // a bit per word of drafts_
  Local<int32_t> verify_lens_, starts_, correct_, trimmed_, committed_;
};

}  // namespace dspark::ascend
