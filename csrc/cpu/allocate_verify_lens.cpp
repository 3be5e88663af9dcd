#include "cpu/kernels.h"
#include "cpu/planning.h"

namespace dspark::cpu {
namespace {

// The budget from an earlier step's confidences.
int64_t history_budget(const AllocateParams& p) {
  const int64_t batch = p.rules.batch, gamma = p.rules.gamma;
  float* survival = at_least(scratch().survival, batch * gamma);
  prefix_survival({batch, gamma, p.history, p.freshness, survival, nullptr});
  Candidates c = find_candidates(survival, p.rules);
  sort_keys(c);
  return search_budget(c, p.rules, p.cost, p.search, p.min_gain_ppm);
}

}  // namespace

void allocate_verify_lens(const AllocateParams& p) {
  prefix_survival(p.current);
  const float* survival = p.current.survival;
  const bool search_here = !p.budget.given() && !p.has_history;
  int64_t budget = p.budget.given() ? p.budget.get() : p.has_history ? history_budget(p) : 0;
  Candidates c = find_candidates(survival, p.rules);
  if (search_here) {
    sort_keys(c);
    budget = search_budget(c, p.rules, p.cost, p.search, p.min_gain_ppm);
  }

  const Execution e = execute(c, budget, p.rules.max_rows, p.tiers);
  const Cut cut = search_here ? cut_sorted(c, e.admitted) : cut_unsorted(c, e.admitted);
  assign_lengths(survival, p.rules, cut, p.verify_lens);
  write_stats(p.stats, c, e, cut.tau, p.cost);
  p.cu_seqlens[0] = 0;
  for (int64_t r = 0; r < p.rules.batch; ++r) p.cu_seqlens[r + 1] = p.cu_seqlens[r] + p.verify_lens[r];
}

}  // namespace dspark::cpu
