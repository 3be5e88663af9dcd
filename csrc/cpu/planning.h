// The steps that plan_budget, schedule_verify_lens and allocate_verify_lens share on the CPU.
//
// Only bare survival keys are sorted, without an index: the sorted keys give tau and the budget, the budget gives a cut
// (a key and how many of its ties are admitted), and each length is a count of the request's survivals above the cut.
// The order of ties matters only where the cut splits them. "Survival" below never rises along k and lies in [0, 1].
#pragma once
#include <vector>

#include "common/params.h"

namespace dspark::cpu {

// Per-thread scratch, kept between calls.
struct Scratch {
  std::vector<uint32_t> keys, other;
  std::vector<float> survival;
  std::vector<int64_t> ties;
};
Scratch& scratch();

struct Candidates {
  int64_t count = 0;     // number of keys
  int64_t tau0 = 0;      // tau of the mandatory rows alone, Q43
  int64_t min_rows = 0;  // M0
  int64_t cap_rows = 0;  // sum of caps
  const uint32_t* keys = nullptr;  // [count], descending
  DSPARK_FN int64_t most(int64_t max_rows) const {
    const int64_t most = cap_rows - min_rows;
    return max_rows < 0 ? most : max64(0, min64(most, max_rows - min_rows));
  }
};

// A budget after its bounds and the tier fill.
struct Execution {
  int64_t budget, admitted, tier;
};

// Copies a caller's survival as its running minimum in [0, 1], so that any input is a valid survival.
const float* monotone(const float* survival, int64_t batch, int64_t gamma);

// Gathers the candidates and sorts their keys, descending.
Candidates find_candidates(const float* survival, const Rules& rules);

// The budget that maximises tau / T (smallest on a tie), or the first drop.
int64_t search_budget(const Candidates& c, const Rules& rules, const Cost& cost, Search search, int64_t min_gain_ppm);

Execution execute(const Candidates& c, int64_t budget, int64_t max_rows, const Tiers& tiers);

// l_r = floor_r + number of r's candidates among the first `admitted` of the order.
void assign_lengths(const float* survival, const Candidates& c, const Rules& rules, int64_t admitted, int32_t* lens);

void write_stats(int64_t* stats, const Candidates& c, const Execution& e, const Cost& cost);

// tau(b) in Q43.
int64_t tau_of(const Candidates& c, int64_t budget);

}  // namespace dspark::cpu
