// Lengths, their prefix sum and tau from a cut, one thread per request.
//
// A request's admitted candidates are a prefix of its own, so its length is a count, and tau of what is executed is
// summed on the way. Only a cut that splits equals needs the tie rule (k first, then r): counts of ties per k find the
// position where they end, and a scan over the requests deals out what is left there.
#pragma once
#include "cuda/cut.cuh"

namespace dspark::cuda {

struct Assignment {
  const float* survival;  // [B, G]
  int32_t* verify_lens;   // [B]
  int32_t* cu_seqlens;    // [B + 1] or null
};

struct TieStorage {
  int64_t last, left;
};

// What the tie rule admits: all ties with k < last, and `left` of those with k == last, in request order.
struct TieRule {
  int64_t last, left;
};

// ties: [G], scratch.
template <int kThreads>
__device__ TieRule split_ties(Team<kThreads>& team, TieStorage& storage, const Assignment& a, const Rules& rules,
                              const Cut& cut, uint32_t* ties) {
  __syncthreads();  // the keys, whose place this is, have been read
  for (int64_t k = threadIdx.x; k < rules.gamma; k += kThreads) ties[k] = 0;
  __syncthreads();
  const float at = key_survival(cut.key);
  for (int64_t r = threadIdx.x; r < rules.batch; r += kThreads) {
    const Span span(rules, r);
    MonotoneRow row(a.survival, rules.gamma, r);
    for (int64_t k = 0; k + 1 < span.cap; ++k) {
      const float s = row.next(k);
      if (s < at) break;
      if (s == at && span.has(k)) atomicAdd(&ties[k], 1u);
    }
  }
  __syncthreads();
  int64_t before_round = 0;
  for (int64_t round = 0; round < rules.gamma && before_round <= cut.ties; round += kThreads) {
    const int64_t k = round + threadIdx.x, mine = k < rules.gamma ? ties[k] : 0;
    int64_t total;
    const int64_t before = before_round + team.exclusive_sum(mine, total);
    if (before <= cut.ties && cut.ties < before + mine) {
      storage.last = k;
      storage.left = cut.ties - before;
    }
    before_round += total;
  }
  __syncthreads();
  return {storage.last, storage.left};
}

// One request's rows as they are known before ties at `last` are dealt out.
struct Draft {
  int64_t length, tau;
  bool tie;   // the next candidate is a tie at `last`
};

__device__ __forceinline__ Draft count_row(const Assignment& a, const Rules& rules, const Cut& cut, const TieRule& rule,
                                           int64_t r) {
  const Span span(rules, r);
  if (span.cap == 0) return {0, 0, false};
  const float at = key_survival(cut.key);
  MonotoneRow row(a.survival, rules.gamma, r);
  Draft draft = {1, kQOne, false};
  for (int64_t k = 0; k + 1 < span.cap; ++k) {
    const float s = row.next(k);
    const bool is_tie = cut.split && s == at && !span.is_mandatory(k);
    draft.tie = is_tie && k == rule.last;
    if (!span.is_mandatory(k) && (is_tie ? k >= rule.last : !(s >= at))) break;
    draft.length = k + 2;
    draft.tau += q43(s);
  }
  return draft;
}

// Writes lengths and offsets; returns tau of the executed lengths to every thread.
template <int kThreads>
__device__ int64_t assign(Team<kThreads>& team, TieStorage& storage, const Assignment& a, const Rules& rules,
                          const Cut& cut, uint32_t* ties) {
  TieRule rule = {0, 0};
  if (cut.split) rule = split_ties(team, storage, a, rules, cut, ties);
  const int64_t q = q43(key_survival(cut.key));
  int64_t tau = 0, rows_before = 0, ties_before = 0;
  if (threadIdx.x == 0 && a.cu_seqlens) a.cu_seqlens[0] = 0;
  for (int64_t round = 0; round < rules.batch; round += kThreads) {
    const int64_t r = round + threadIdx.x;
    Draft draft = {0, 0, false};
    if (r < rules.batch) draft = count_row(a, rules, cut, rule, r);
    int64_t total;
    if (cut.split) {
      const int64_t rank = ties_before + team.exclusive_sum(draft.tie, total);
      ties_before += total;
      if (draft.tie && rank < rule.left) {
        ++draft.length;
        draft.tau += q;
      }
    }
    tau += draft.tau;
    if (r < rules.batch) a.verify_lens[r] = int32_t(draft.length);
    if (!a.cu_seqlens) continue;
    const int64_t before = rows_before + team.exclusive_sum(draft.length, total);
    rows_before += total;
    if (r < rules.batch) a.cu_seqlens[r + 1] = int32_t(before + draft.length);
  }
  return team.sum(tau);
}

}  // namespace dspark::cuda
