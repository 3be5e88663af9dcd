#include "cpu/kernels.h"
#include "cpu/planning.h"

namespace dspark::cpu {

void schedule_verify_lens(const ScheduleParams& p) {
  const float* survival = monotone(p.survival, p.rules.batch, p.rules.gamma);
  const Candidates c = find_candidates(survival, p.rules);
  const Execution e = execute(c, p.budget.get(), p.rules.max_rows, p.tiers);
  const Cut cut = cut_unsorted(c, e.admitted);
  assign_lengths(survival, p.rules, cut, p.verify_lens);
  write_stats(p.stats, c, e, cut.tau, p.cost);
}

}  // namespace dspark::cpu
