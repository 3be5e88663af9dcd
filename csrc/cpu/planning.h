// The steps that plan_budget, schedule_verify_lens and allocate_verify_lens share on the CPU.
//
// Only bare survival keys are ordered, without an index: sorted keys give tau and the budget, the budget gives a cut
// (a key, and how many of its ties are admitted), and each length is a count of the request's survivals above the cut.
// The order of ties matters only where the cut splits them. A budget that is known beforehand needs no sort at all:
// selecting the cut is enough. "Survival" below never rises along k and lies in [0, 1].
#pragma once
#include <vector>

#include "common/params.h"

namespace dspark::cpu {

// Per-thread scratch, kept between calls.
struct Scratch {
  std::vector<uint32_t> keys, other, third;
  std::vector<float> survival;
  std::vector<int64_t> ties;
};
Scratch& scratch();

template <class T>
T* at_least(std::vector<T>& v, int64_t size) {
  if (int64_t(v.size()) < size) v.resize(size);
  return v.data();
}

struct Candidates {
  int64_t count = 0;      // number of keys
  int64_t tau0 = 0;       // tau of the mandatory rows alone, Q43
  int64_t min_rows = 0;   // M0
  int64_t cap_rows = 0;   // sum of caps
  uint32_t least = 1;        // key of eps
  uint32_t* keys = nullptr;  // [count], in no order until they are sorted
  int64_t most(int64_t max_rows) const {
    const int64_t most = cap_rows - min_rows;
    return max_rows < 0 ? most : max64(0, min64(most, max_rows - min_rows));
  }
};

// A budget after its bounds and the tier fill.
struct Execution {
  int64_t budget, admitted, tier;
};

// Where the order is cut: all keys greater than `key` are admitted, and `ties` of its `equal` equals; tau is their progress.
struct Cut {
  uint32_t key;
  int64_t ties, equal, tau;
};

// Copies a caller's survival as its running minimum in [0, 1], so that any input is a valid survival.
const float* monotone(const float* survival, int64_t batch, int64_t gamma);

Candidates find_candidates(const float* survival, const Rules& rules);

// Sorts the keys, descending.
void sort_keys(Candidates& c);

// The budget that maximises tau / T (smallest on a tie), or the first drop. Keys must be sorted.
int64_t search_budget(const Candidates& c, const Rules& rules, const Cost& cost, Search search, int64_t min_gain_ppm);

Execution execute(const Candidates& c, int64_t budget, int64_t max_rows, const Tiers& tiers);

// The cut that admits so many candidates.
Cut cut_sorted(const Candidates& c, int64_t admitted);
Cut cut_unsorted(const Candidates& c, int64_t admitted);

// l_r = floor_r + number of r's candidates that the cut admits.
void assign_lengths(const float* survival, const Rules& rules, const Cut& cut, int32_t* lens);

void write_stats(int64_t* stats, const Candidates& c, const Execution& e, int64_t tau, const Cost& cost);

// tau(b) in Q43. Keys must be sorted.
int64_t tau_of(const Candidates& c, int64_t budget);

}  // namespace dspark::cpu
