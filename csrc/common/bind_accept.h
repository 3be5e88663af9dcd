// Dispatcher arguments -> parameters of the acceptance operators.
#pragma once
#include "common/checks.h"

namespace dspark {

constexpr double kLargestRate = 1e6;

inline LearningParams bind_learning(const OptTensor& confidence, const OptTensor& slots, double decay, double eta,
                                    double limit, const OptTensor& offset, int64_t batch, int64_t gamma) {
  STD_TORCH_CHECK(offset.has_value() == confidence.has_value() && (offset || !slots),
                  "confidence, slots: must be given with offset, and only then");
  const auto rate = [](double x, double most) { return x >= 0 && x <= most; };
  STD_TORCH_CHECK(!offset || (rate(decay, 1) && rate(eta, kLargestRate) && rate(limit, kLargestRate)),
                  "decay, eta, limit: out of range");
  const int64_t num_slots = offset && slots ? offset->numel() : batch;
  return {input<float>(confidence, "confidence", batch, gamma),
          index_input(slots, "slots", batch),
          num_slots,
          float(decay),
          float(eta),
          float(limit),
          output<float>(offset, "offset", num_slots)};
}

inline UpdateOffsetParams bind_update_offset(const Tensor& confidence, const Tensor& correct_len,
                                             const Tensor& verify_lens, const OptTensor& slots, double decay,
                                             double eta, double limit, const Tensor& offset) {
  STD_TORCH_CHECK(confidence.dim() == 2, "confidence: expected shape [B, gamma]");
  const int64_t batch = confidence.size(0), gamma = confidence.size(1);
  check_width(batch, gamma);
  return {bind_learning(confidence, slots, decay, eta, limit, offset, batch, gamma),
          input<int32_t>(correct_len, "correct_len", batch), input<int32_t>(verify_lens, "verify_lens", batch), batch,
          gamma};
}

// Strided [B, N] or [B * N], or with cu_seqlens compact, [R].
inline const int64_t* bind_target(const OptTensor& t, const OptTensor& cu_seqlens, int64_t batch, int64_t width) {
  if (!t) return nullptr;
  if (cu_seqlens) return input<int64_t>(*t, "target_tokens", t->numel());
  return t->dim() == 1 ? input<int64_t>(*t, "target_tokens", batch * width)
                       : input<int64_t>(*t, "target_tokens", batch, width);
}

inline AcceptParams bind_accept(const OptTensor& raw_correct_len, const Tensor& draft_tokens, const Tensor& verify_lens,
                                const OptTensor& prefix, const OptTensor& bonus_tokens, const OptTensor& target_tokens,
                                const OptTensor& cu_seqlens, const OptTensor& confidence, const OptTensor& slots,
                                double decay, double eta, double limit, const OptTensor& offset,
                                const Tensor& correct_len, const Tensor& trimmed, const Tensor& bonus,
                                const Tensor& commit_len, const OptTensor& new_seq_len, const Tensor& out_tokens) {
  STD_TORCH_CHECK(draft_tokens.dim() == 2, "draft_tokens: expected shape [B, gamma]");
  const int64_t batch = draft_tokens.size(0), gamma = draft_tokens.size(1), rows = batch * (gamma + 1);
  check_width(batch, gamma);
  STD_TORCH_CHECK(bonus_tokens.has_value() != target_tokens.has_value(),
                  "bonus, target_tokens: expected exactly one of them");
  STD_TORCH_CHECK(!(cu_seqlens && bonus_tokens), "cu_seqlens: only with target_tokens");
  STD_TORCH_CHECK(prefix.has_value() == new_seq_len.has_value() &&
                      (!prefix || prefix->scalar_type() == new_seq_len->scalar_type()),
                  "new_seq_len: must have the dtype of prefix, and be given with it");
  const int64_t target_rows = target_tokens && cu_seqlens ? target_tokens->numel() : rows;
  return {input<int32_t>(raw_correct_len, "raw_correct_len", batch),
          input<int64_t>(draft_tokens, "draft_tokens", batch, gamma),
          bind_target(target_tokens, cu_seqlens, batch, gamma + 1),
          input<int64_t>(bonus_tokens, "bonus", batch),
          input<int32_t>(cu_seqlens, "cu_seqlens", batch + 1),
          input<int32_t>(verify_lens, "verify_lens", batch),
          index_input(prefix, "prefix", batch),
          bind_learning(confidence, slots, decay, eta, limit, offset, batch, gamma),
          batch,
          gamma,
          target_rows,
          output<int32_t>(correct_len, "out.correct_len", batch),
          output<int32_t>(trimmed, "out.trimmed", batch),
          output<int64_t>(bonus, "out.bonus", batch),
          output<int32_t>(commit_len, "out.commit_len", batch),
          index_output(new_seq_len, "out.new_seq_len", batch),
          output<int64_t>(out_tokens, "out.out_tokens", batch, gamma + 1)};
}

inline AcceptParams bind_accept_greedy(const Tensor& draft_tokens, const Tensor& target_tokens,
                                       const Tensor& verify_lens, const OptTensor& prefix, const OptTensor& cu_seqlens,
                                       const OptTensor& confidence, const OptTensor& slots, double decay, double eta,
                                       double limit, const OptTensor& offset, const Tensor& correct_len,
                                       const Tensor& trimmed, const Tensor& bonus, const Tensor& commit_len,
                                       const OptTensor& new_seq_len, const Tensor& out_tokens) {
  return bind_accept(std::nullopt, draft_tokens, verify_lens, prefix, std::nullopt, target_tokens, cu_seqlens,
                     confidence, slots, decay, eta, limit, offset, correct_len, trimmed, bonus, commit_len, new_seq_len,
                     out_tokens);
}

inline AcceptParams bind_finalize_accept(const Tensor& raw_correct_len, const Tensor& draft_tokens,
                                         const Tensor& verify_lens, const OptTensor& prefix,
                                         const OptTensor& bonus_tokens, const OptTensor& target_tokens,
                                         const OptTensor& cu_seqlens, const OptTensor& confidence,
                                         const OptTensor& slots, double decay, double eta, double limit,
                                         const OptTensor& offset, const Tensor& correct_len, const Tensor& trimmed,
                                         const Tensor& bonus, const Tensor& commit_len, const OptTensor& new_seq_len,
                                         const Tensor& out_tokens) {
  return bind_accept(raw_correct_len, draft_tokens, verify_lens, prefix, bonus_tokens, target_tokens, cu_seqlens,
                     confidence, slots, decay, eta, limit, offset, correct_len, trimmed, bonus, commit_len, new_seq_len,
                     out_tokens);
}

}  // namespace dspark
