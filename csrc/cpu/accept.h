// What the acceptance operators do for one request once its accepted length is known.
#pragma once
#include "common/offset.h"
#include "common/params.h"

namespace dspark::cpu {

inline void learn(const LearningParams& p, int64_t gamma, int64_t r, int64_t correct, int64_t verify_len) {
  if (verify_len <= 0) return;
  const int64_t slot = p.slots ? p.slots[r] : r;
  if (slot < 0 || slot >= p.num_slots) return;
  p.offset[slot] =
      next_offset(p.offset[slot], p.confidence + r * gamma, correct, verify_len, p.decay, p.eta, p.limit);
}

// The target token at a row of request r, or null where the buffer has no such row.
inline const int64_t* target_at(const AcceptParams& p, int64_t r, int64_t row) {
  const int64_t i = (p.cu_seqlens ? int64_t(p.cu_seqlens[r]) : r * (p.gamma + 1)) + row;
  return i >= 0 && i < p.target_rows ? p.target_tokens + i : nullptr;
}

// raw: accepted drafts in [0, G] before the cut at the verify length.
inline void commit(const AcceptParams& p, int64_t r, int64_t raw) {
  const int64_t width = p.gamma + 1;
  const int64_t verify_len = clamp64(p.verify_lens[r], 0, width);
  const bool active = verify_len > 0;
  const int64_t correct = active ? min64(raw, verify_len - 1) : 0;
  const int64_t committed = active ? correct + 1 : 0;
  int64_t bonus = 0;
  if (active && p.bonus_tokens) {
    bonus = p.bonus_tokens[r];
  } else if (active) {
    const int64_t* token = target_at(p, r, correct);
    bonus = token ? *token : 0;
  }
  int64_t* out = p.out_tokens + r * width;
  for (int64_t k = 0; k < p.gamma; ++k) out[k] = active ? p.draft_tokens[r * p.gamma + k] : 0;
  out[p.gamma] = 0;
  out[correct] = bonus;
  p.correct_len[r] = int32_t(correct);
  p.trimmed[r] = active && !p.cu_seqlens ? int32_t(raw - correct) : 0;
  p.bonus[r] = bonus;
  p.commit_len[r] = int32_t(committed);
  if (p.new_seq_len) p.new_seq_len.set(r, saturate32(saturate32(p.prefix[r]) + committed));
  if (p.learning.offset) learn(p.learning, p.gamma, r, correct, verify_len);
}

}  // namespace dspark::cpu
