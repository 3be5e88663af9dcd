// The budget, its stats, and tau at each tier. One core: the plan is a few hundred vector instructions on a few
// kilobytes, less than two SyncAll would cost.
#pragma once
#include "ascend/plan.h"

namespace dspark::ascend {

constexpr uint32_t kTierTau = kColumns + 256, kTierTauCount = 440;
static_assert(kTierTau + kTierTauCount * 8 <= kSmallBytes, "tau of a batch of tiers fits the small area");

__aicore__ inline void write_tier_tau(const Arena& arena, Windows& windows, const Totals& totals,
                                      const PlanBudgetParams& p, bool of_budgets) {
  const Global<int32_t> rows = global<int32_t>(p.tiers.rows);
  const Local<int64_t> words = arena.small<int64_t>(kTierTau, kTierTauCount * 8);
  for (int64_t first = 0; first < p.tiers.count; first += kTierTauCount) {
    const uint32_t n = uint32_t(min64(kTierTauCount, p.tiers.count - first));
    for (uint32_t i = 0; i < n; ++i) {
      const int64_t tier = rows.GetValue(uint64_t(first + i)), room = max64(tier - totals.min_rows, 0);
      const int64_t budget = min64(min64(room, totals.most(p.rules.max_rows)), totals.count);
      words.SetValue(i, of_budgets ? tau_at(windows, totals, budget) : int64_t(tier < totals.min_rows));
    }
    sync<HardEvent::S_MTE3>();
    store(global<int64_t>(p.tier_tau)[uint64_t(of_budgets ? first : p.tiers.count + first)], words, n);
    sync<HardEvent::MTE3_S>();
  }
}

__aicore__ inline void plan_budget(const PlanBudgetParams& p, void* workspace) {
  if (AscendC::GetBlockIdx() != 0) return;
  Arena arena;
  const Keys keys(p.rules, workspace);
  const Source source = {p.survival, {}, {}, nullptr, nullptr};
  const Totals totals = Candidates(arena, p.rules, keys).collect(source);
  Windows windows(arena, keys, totals);
  const int64_t budget = BudgetSearch(arena, totals, p.rules, p.cost).run(windows, p.search, p.min_gain_ppm);
  const Execution e = execute(totals, budget, p.rules.max_rows, p.tiers);
  const int64_t tau = tau_at(windows, totals, e.admitted);
  write_stats(arena, p.stats, totals, e, tau, p.cost);
  if (!p.tier_tau) return;
  write_tier_tau(arena, windows, totals, p, true);
  write_tier_tau(arena, windows, totals, p, false);
}

}  // namespace dspark::ascend
