// Offsets alone: a lane per request (learn.h).
#pragma once
#include "ascend/learn.h"

namespace dspark::ascend {

__aicore__ inline void update_offset(const UpdateOffsetParams& p) {
  Fields<kLearnBytes + 2 * kTileLanes * 4> fields;
  Learner learner(fields, p.learning, p.gamma);
  const Local<int32_t> verify_lens = fields.take<int32_t>(kTileLanes), correct = fields.take<int32_t>(kTileLanes);
  for (RequestTile tile(p.batch); tile.count; tile.next()) {
    load(verify_lens, global<int32_t>(p.verify_lens)[uint64_t(tile.first)], tile.count);
    load(correct, global<int32_t>(p.correct_len)[uint64_t(tile.first)], tile.count);
    sync<HardEvent::MTE2_V>();
    at_least(correct, correct, int32_t(0), kTileLanes);
    at_most(correct, correct, int32_t(p.gamma), kTileLanes);
    learner.run(tile, verify_lens, correct);
  }
}

}  // namespace dspark::ascend
