#include "cpu/kernels.h"
#include "cpu/planning.h"

namespace dspark::cpu {

void plan_budget(const PlanBudgetParams& p) {
  const Candidates c = find_candidates(monotone(p.survival, p.rules.batch, p.rules.gamma), p.rules);
  const int64_t budget = search_budget(c, p.rules, p.cost, p.search, p.min_gain_ppm);
  write_stats(p.stats, c, execute(c, budget, p.rules.max_rows, p.tiers), p.cost);
  if (!p.tier_tau) return;
  for (int64_t i = 0; i < p.tiers.count; ++i) {
    const int64_t room = min64(max64(p.tiers.rows[i] - c.min_rows, 0), c.most(p.rules.max_rows));
    p.tier_tau[i] = tau_of(c, min64(room, c.count));
    p.tier_tau[p.tiers.count + i] = p.tiers.rows[i] < c.min_rows;
  }
}

}  // namespace dspark::cpu
