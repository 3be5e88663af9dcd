// Survival, budget, lengths, offsets and stats in one launch on one core. Each input is read once; nothing leaves the
// unified buffer in between while 512 requests of 7 drafts, or as many keys otherwise, fit it. A budget from history
// costs a second sort, of the current keys: cheaper than any selection (see schedule_verify_lens_kernel.h).
#pragma once
#include "ascend/plan.h"

namespace dspark::ascend {

__aicore__ inline void allocate_verify_lens(const AllocateParams& p, void* workspace) {
  if (AscendC::GetBlockIdx() != 0) return;
  Arena arena;
  const Keys keys(p.rules, workspace);
  Candidates candidates(arena, p.rules, keys);
  const bool searches = !p.budget.given(), on_history = searches && p.has_history;
  int64_t budget = searches ? 0 : given_budget(p.budget);
  if (on_history) {
    const Source history = {nullptr, p.history, p.freshness, nullptr, nullptr};
    const Totals totals = candidates.collect(history);
    Windows windows(arena, keys, totals);
    budget = BudgetSearch(arena, totals, p.rules, p.cost).run(windows, p.search, p.min_gain_ppm);
    sync<HardEvent::V_MTE2>();
  }
  const Source current = {nullptr, p.current.confidence, p.current.freshness, p.current.survival, p.current.calibrated};
  const Totals totals = candidates.collect(current);
  Windows windows(arena, keys, totals);
  if (searches && !on_history)
    budget = BudgetSearch(arena, totals, p.rules, p.cost).run(windows, p.search, p.min_gain_ppm);
  const Execution e = execute(totals, budget, p.rules.max_rows, p.tiers);
  finish_plan(arena, windows, keys, totals, e, p.rules, p.cost, p.verify_lens, p.cu_seqlens, p.stats);
}

}  // namespace dspark::ascend
