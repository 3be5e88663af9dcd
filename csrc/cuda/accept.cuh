// What the acceptance operators do for one request once its accepted length is known. A thread per request: the work is
// some 30 loads and stores, the launch costs more than all of it. Blocks are small, to use several multiprocessors.
#pragma once
#include "common/offset.h"
#include "common/params.h"
#include "cuda/device.cuh"

namespace dspark::cuda {

constexpr int kAcceptThreads = 64;

__device__ __forceinline__ int64_t request_of_thread() { return int64_t(blockIdx.x) * kAcceptThreads + threadIdx.x; }

__device__ __forceinline__ void learn(const LearningParams& p, int64_t gamma, int64_t r, int64_t correct,
                                      int64_t verify_len) {
  if (verify_len <= 0) return;
  const int64_t slot = p.slots ? p.slots[r] : r;
  if (slot < 0 || slot >= p.num_slots) return;
  p.offset[slot] =
      next_offset(p.offset[slot], p.confidence + r * gamma, correct, verify_len, p.decay, p.eta, p.limit);
}

// The target token at a row of request r, or null where the buffer has no such row.
__device__ __forceinline__ const int64_t* target_at(const AcceptParams& p, int64_t r, int64_t row) {
  const int64_t i = (p.cu_seqlens ? int64_t(p.cu_seqlens[r]) : r * (p.gamma + 1)) + row;
  return i >= 0 && i < p.target_rows ? p.target_tokens + i : nullptr;
}

// raw: accepted drafts in [0, G] before the cut at the verify length.
__device__ __forceinline__ void commit(const AcceptParams& p, int64_t r, int64_t raw) {
  const int64_t verify_len = clamp64(p.verify_lens[r], 0, p.gamma + 1);
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
  int64_t* out = p.out_tokens + r * (p.gamma + 1);
  for (int64_t k = 0; k <= p.gamma; ++k) {
    const int64_t draft = active && k < p.gamma ? p.draft_tokens[r * p.gamma + k] : 0;
    out[k] = k == correct ? bonus : draft;
  }
  p.correct_len[r] = int32_t(correct);
  p.trimmed[r] = active && !p.cu_seqlens ? int32_t(raw - correct) : 0;
  p.bonus[r] = bonus;
  p.commit_len[r] = int32_t(committed);
  if (p.new_seq_len) p.new_seq_len.set(r, saturate32(saturate32(p.prefix[r]) + committed));
  if (p.learning.offset) learn(p.learning, p.gamma, r, correct, verify_len);
}

template <class P>
cudaError_t launch_per_request(void (*kernel)(P), int64_t batch, cudaStream_t stream, const P& p) {
  if (batch == 0) return cudaSuccess;
  return launch(kernel, ceil_div(batch, kAcceptThreads), kAcceptThreads, 0, stream, p);
}

}  // namespace dspark::cuda
