#include "cpu/planning.h"

namespace dspark::cpu {

Scratch& scratch() {
  static thread_local Scratch s;
  return s;
}

const float* monotone(const float* survival, int64_t batch, int64_t gamma) {
  float* copy = at_least(scratch().survival, batch * gamma);
  for (int64_t r = 0; r < batch; ++r) {
    float least = 1.0f;
    for (int64_t i = r * gamma; i < (r + 1) * gamma; ++i) {
      const float s = unit_interval(survival[i]);
      copy[i] = least = s < least ? s : least;
    }
  }
  return copy;
}

Candidates find_candidates(const float* survival, const Rules& rules) {
  Candidates c;
  c.least = survival_key(rules.survival_eps);
  c.keys = at_least(scratch().keys, rules.batch * rules.gamma);
  for (int64_t r = 0; r < rules.batch; ++r) {
    const float* row = survival + r * rules.gamma;
    const int32_t cap = row_cap(rules.caps, r, rules.max_verify_len);
    const int32_t floor = row_floor(rules.min_verify_len, cap);
    if (cap > 0) c.tau0 += kQOne;
    c.min_rows += floor;
    c.cap_rows += cap;
    for (int32_t k = 0; k < floor - 1; ++k) c.tau0 += q43(row[k]);
    for (int32_t k = max64(floor - 1, 0); k < cap - 1 && row[k] >= rules.survival_eps; ++k)
      c.keys[c.count++] = survival_key(row[k]);
  }
  return c;
}

int64_t search_budget(const Candidates& c, const Rules& rules, const Cost& cost, Search search, int64_t min_gain_ppm) {
  const int64_t limit = min64(c.count, c.most(rules.max_rows)), base = cost.base();
  const int32_t* const step_ns = cost.step_ns;
  const int64_t min_rows = c.min_rows, length = cost.length;
  const uint32_t* const keys = c.keys;
  const auto time = [=](int64_t b) { return step_time_ns(step_ns, length, base, min_rows + b); };
  int64_t tau = c.tau0, t = time(0);

  if (search == Search::first_drop) {
    for (int64_t b = 1; b <= limit; ++b) {
      const int64_t q = q43(key_survival(keys[b - 1])), next = time(b);
      if (first_drop_stops(q, tau, t, next)) return b - 1;
      tau += q;
      t = next;
    }
    return limit;
  }

  // Doubles decide what differs by more than 2^-50 (each product is within 2^-51.4 of exact); the rest is compared
  // exactly. `below` is the best ratio, less that margin.
  constexpr double kBelow = 1.0 - 0x1p-50, kAbove = 1.0 + 0x1p-50;
  int64_t best = 0, best_tau = tau, best_t = t;
  double best_tau_d = double(tau), best_t_d = double(t);
  for (int64_t b = 1; b <= limit; ++b) {
    tau += q43(key_survival(keys[b - 1]));
    t = time(b);
    const double gain = double(tau) * best_t_d, bar = best_tau_d * double(t);
    if (gain < bar * kBelow) continue;
    if (gain > bar * kAbove || ratio_greater(tau, t, best_tau, best_t)) {
      best = b;
      best_tau = tau;
      best_t = t;
      best_tau_d = double(tau);
      best_t_d = double(t);
    }
  }
  if (min_gain_ppm > 0 && !gain_exceeds(best_tau, best_t, tau, t, min_gain_ppm)) return limit;
  return best;
}

Execution execute(const Candidates& c, int64_t budget, int64_t max_rows, const Tiers& tiers) {
  const int64_t most = c.most(max_rows);
  const int64_t bounded = clamp64(budget, 0, most);
  int64_t tier = -1, filled = bounded;
  for (int64_t i = 0; i < tiers.count; ++i)
    if (tiers.rows[i] >= c.min_rows + bounded && (tier < 0 || tiers.rows[i] < tier)) tier = tiers.rows[i];
  if (tiers.fill && tier >= 0) filled = max64(bounded, min64(tier - c.min_rows, most));
  return {bounded, min64(filled, c.count), tier};
}

void assign_lengths(const float* survival, const Rules& rules, const Cut& cut, int32_t* lens) {
  const float at = key_survival(cut.key);
  const bool split = cut.ties < cut.equal;
  std::vector<int64_t>& ties = scratch().ties;
  if (split) ties.assign(rules.gamma, 0);
  for (int64_t r = 0; r < rules.batch; ++r) {
    const float* row = survival + r * rules.gamma;
    const int32_t cap = row_cap(rules.caps, r, rules.max_verify_len);
    int32_t k = max64(row_floor(rules.min_verify_len, cap) - 1, 0);
    if (split) {
      while (k < cap - 1 && row[k] > at) ++k;
      for (int32_t tie = k; tie < cap - 1 && row[tie] == at; ++tie) ++ties[tie];
    } else {
      while (k < cap - 1 && row[k] >= at) ++k;
    }
    lens[r] = cap > 0 ? k + 1 : 0;
  }
  if (!split) return;

  // Ties go by k, then by r: all of them where k < last, and `left` of them, in request order, where k == last.
  int64_t last = 0, left = cut.ties;
  while (ties[last] <= left) left -= ties[last++];
  for (int64_t r = 0; r < rules.batch; ++r) {
    const float* row = survival + r * rules.gamma;
    const int32_t cap = row_cap(rules.caps, r, rules.max_verify_len);
    if (cap == 0) continue;
    int32_t k = lens[r] - 1;
    while (k < cap - 1 && k < last && row[k] == at) ++k;
    if (k == last && k < cap - 1 && row[k] == at && left > 0) {
      --left;
      ++k;
    }
    lens[r] = k + 1;
  }
}

int64_t tau_of(const Candidates& c, int64_t budget) {
  int64_t tau = c.tau0;
  for (int64_t i = 0; i < budget; ++i) tau += q43(key_survival(c.keys[i]));
  return tau;
}

void write_stats(int64_t* stats, const Candidates& c, const Execution& e, int64_t tau, const Cost& cost) {
  const int64_t rows = c.min_rows + e.admitted;
  stats[0] = e.budget;
  stats[1] = rows;
  stats[2] = e.tier;
  stats[3] = tau;
  stats[4] = cost.step_ns ? step_time_ns(cost.step_ns, cost.length, cost.base(), rows) : 0;
}

}  // namespace dspark::cpu
