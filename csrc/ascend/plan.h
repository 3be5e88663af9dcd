// What the planning kernels do once the keys are there: bound the budget, write stats.
#pragma once
#include "ascend/assign.h"
#include "ascend/search.h"

namespace dspark::ascend {

// A budget after its bounds and the tier fill.
struct Execution {
  int64_t budget, admitted, tier;
};

__aicore__ inline Execution execute(const Totals& totals, int64_t budget, int64_t max_rows, const Tiers& tiers) {
  const int64_t most = totals.most(max_rows), bounded = clamp64(budget, 0, most);
  const Global<int32_t> rows = global<int32_t>(tiers.rows);
  int64_t tier = -1;
  for (int64_t i = 0; i < tiers.count; ++i) {
    const int64_t here = rows.GetValue(uint64_t(i));
    if (here >= totals.min_rows + bounded && (tier < 0 || here < tier)) tier = here;
  }
  const int64_t filled = tiers.fill && tier >= 0 ? max64(bounded, min64(tier - totals.min_rows, most)) : bounded;
  return {bounded, min64(filled, totals.count), tier};
}

__aicore__ inline int64_t given_budget(const Budget& budget) {
  return budget.scalar ? global<int64_t>(budget.scalar).GetValue(0) : budget.value;
}

__aicore__ inline int64_t tau_at(Windows& windows, const Totals& totals, int64_t budget) {
  if (budget <= 0) return totals.tau0;
  windows.seek(budget);
  return windows.tau(budget);
}

__aicore__ inline void write_stats(const Arena& arena, int64_t* stats, const Totals& totals, const Execution& e,
                                   int64_t tau, const Cost& cost) {
  const int64_t rows = totals.min_rows + e.admitted;
  const Local<int64_t> words = arena.small<int64_t>(kWords, 64);
  sync<HardEvent::V_S>();
  sync<HardEvent::MTE3_S>();
  words.SetValue(0, e.budget);
  words.SetValue(1, rows);
  words.SetValue(2, e.tier);
  words.SetValue(3, tau);
  words.SetValue(4, cost.step_ns ? Times(cost).at(rows) : 0);
  sync<HardEvent::S_MTE3>();
  store(global<int64_t>(stats), words, 5);
}

// Cuts at the executed budget and writes lengths and stats.
__aicore__ inline void finish_plan(const Arena& arena, Windows& windows, const Keys& keys, const Totals& totals,
                                   const Execution& e, const Rules& rules, const Cost& cost, int32_t* lens,
                                   int32_t* cu_seqlens, int64_t* stats) {
  const int64_t tau = tau_at(windows, totals, e.admitted);
  Assignment assignment(arena, rules, keys);
  assignment.write(assignment.cut_at(windows, totals, e.admitted), lens, cu_seqlens);
  write_stats(arena, stats, totals, e, tau, cost);
}

}  // namespace dspark::ascend
