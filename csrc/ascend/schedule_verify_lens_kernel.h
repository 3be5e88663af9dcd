// The lengths of a given budget. The sort is kept although a selection would do: Sort32 and MrgSort are 4 instructions
// at 448 keys, a bisection of the value 28 rounds of three and a wait for the scalar unit each.
#pragma once
#include "ascend/plan.h"

namespace dspark::ascend {

__aicore__ inline void schedule_verify_lens(const ScheduleParams& p, void* workspace) {
  if (AscendC::GetBlockIdx() != 0) return;
  Arena arena;
  const Keys keys(p.rules, workspace);
  const Source source = {p.survival, {}, {}, nullptr, nullptr};
  const Totals totals = Candidates(arena, p.rules, keys).collect(source);
  Windows windows(arena, keys, totals);
  const Execution e = execute(totals, given_budget(p.budget), p.rules.max_rows, p.tiers);
  finish_plan(arena, windows, keys, totals, e, p.rules, p.cost, p.verify_lens, nullptr, p.stats);
}

}  // namespace dspark::ascend
