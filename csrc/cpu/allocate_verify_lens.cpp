#include "cpu/kernels.h"
#include "cpu/planning.h"

namespace dspark::cpu {
namespace {

// The budget from an earlier step's confidences.
int64_t history_budget(const AllocateParams& p) {
  const int64_t batch = p.rules.batch, gamma = p.rules.gamma;
  std::vector<float>& survival = scratch().survival;
  if (int64_t(survival.size()) < batch * gamma) survival.resize(batch * gamma);
  prefix_survival({batch, gamma, p.history, p.freshness, survival.data(), nullptr});
  return search_budget(find_candidates(survival.data(), p.rules), p.rules, p.cost, p.search, p.min_gain_ppm);
}

}  // namespace

void allocate_verify_lens(const AllocateParams& p) {
  prefix_survival(p.current);
  const float* survival = p.current.survival;
  const bool searched = !p.budget.given();
  int64_t budget = searched && p.has_history ? history_budget(p) : p.budget.get();
  const Candidates c = find_candidates(survival, p.rules);
  if (searched && !p.has_history) budget = search_budget(c, p.rules, p.cost, p.search, p.min_gain_ppm);

  const Execution e = execute(c, budget, p.rules.max_rows, p.tiers);
  assign_lengths(survival, c, p.rules, e.admitted, p.verify_lens);
  write_stats(p.stats, c, e, p.cost);
  p.cu_seqlens[0] = 0;
  for (int64_t r = 0; r < p.rules.batch; ++r) p.cu_seqlens[r + 1] = p.cu_seqlens[r] + p.verify_lens[r];
}

}  // namespace dspark::cpu
