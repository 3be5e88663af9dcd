#include "cpu/kernels.h"
#include "cpu/planning.h"

namespace dspark::cpu {

void plan_budget(const PlanBudgetParams& p) {
  Candidates c = find_candidates(monotone(p.survival, p.rules.batch, p.rules.gamma), p.rules);
  sort_keys(c);
  const int64_t budget = search_budget(c, p.rules, p.cost, p.search, p.min_gain_ppm);
  const Execution e = execute(c, budget, p.rules.max_rows, p.tiers);
  write_stats(p.stats, c, e, tau_of(c, e.admitted), p.cost);
  if (!p.tier_tau) return;
  for (int64_t i = 0; i < p.tiers.count; ++i) {
    const int64_t room = min64(max64(p.tiers.rows[i] - c.min_rows, 0), c.most(p.rules.max_rows));
    p.tier_tau[i] = tau_of(c, min64(room, c.count));
    p.tier_tau[p.tiers.count + i] = p.tiers.rows[i] < c.min_rows;
  }
}

}  // namespace dspark::cpu
