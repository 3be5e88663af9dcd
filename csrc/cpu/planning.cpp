#include "cpu/planning.h"

#include <algorithm>
#include <functional>

namespace dspark::cpu {

Scratch& scratch() {
  static thread_local Scratch s;
  return s;
}

const float* monotone(const float* survival, int64_t batch, int64_t gamma) {
  std::vector<float>& copy = scratch().survival;
  if (int64_t(copy.size()) < batch * gamma) copy.resize(batch * gamma);
  for (int64_t r = 0; r < batch; ++r) {
    float least = 1.0f;
    for (int64_t i = r * gamma; i < (r + 1) * gamma; ++i) {
      const float s = unit_interval(survival[i]);
      copy[i] = least = s < least ? s : least;
    }
  }
  return copy.data();
}

namespace {

constexpr int kDigitBits = 7, kDigits = 4, kRadix = 1 << kDigitBits;  // 4 x 7 = kKeyBits
constexpr int64_t kSmallSort = 40;
static_assert(kDigitBits * kDigits == kKeyBits, "the digits cover a key");

// Stable LSD radix sort, descending; returns where the result lies. A digit that all keys share costs nothing.
const uint32_t* sort_descending(uint32_t* keys, uint32_t* other, int64_t n) {
  if (n <= kSmallSort) {
    std::sort(keys, keys + n, std::greater<uint32_t>());
    return keys;
  }
  uint32_t histogram[kDigits][kRadix] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++histogram[d][(keys[i] >> (d * kDigitBits)) & (kRadix - 1)];
  for (int d = 0; d < kDigits; ++d) {
    uint32_t* count = histogram[d];
    const int shift = d * kDigitBits;
    if (count[(keys[0] >> shift) & (kRadix - 1)] == uint32_t(n)) continue;
    uint32_t start = 0;
    for (int digit = kRadix - 1; digit >= 0; --digit) {
      const uint32_t size = count[digit];
      count[digit] = start;
      start += size;
    }
    for (int64_t i = 0; i < n; ++i) other[count[(keys[i] >> shift) & (kRadix - 1)]++] = keys[i];
    std::swap(keys, other);
  }
  return keys;
}

int64_t q43_of_key(uint32_t key) { return q43(key_survival(key)); }

}  // namespace

Candidates find_candidates(const float* survival, const Rules& rules) {
  Scratch& s = scratch();
  const int64_t n = rules.batch * rules.gamma;
  if (int64_t(s.keys.size()) < n) {
    s.keys.resize(n);
    s.other.resize(n);
  }
  Candidates c;
  for (int64_t r = 0; r < rules.batch; ++r) {
    const float* row = survival + r * rules.gamma;
    const int32_t cap = row_cap(rules.caps, r, rules.max_verify_len);
    const int32_t floor = row_floor(rules.min_verify_len, cap);
    if (cap > 0) c.tau0 += kQOne;
    c.min_rows += floor;
    c.cap_rows += cap;
    for (int32_t k = 0; k < floor - 1; ++k) c.tau0 += q43(row[k]);
    for (int32_t k = max64(floor - 1, 0); k < cap - 1 && row[k] >= rules.survival_eps; ++k)
      s.keys[c.count++] = survival_key(row[k]);
  }
  c.keys = sort_descending(s.keys.data(), s.other.data(), c.count);
  return c;
}

int64_t search_budget(const Candidates& c, const Rules& rules, const Cost& cost, Search search, int64_t min_gain_ppm) {
  const int64_t limit = min64(c.count, c.most(rules.max_rows)), base = cost.base();
  const auto time = [&](int64_t b) { return step_time_ns(cost.step_ns, cost.length, base, c.min_rows + b); };
  int64_t tau = c.tau0, t = time(0);

  if (search == Search::first_drop) {
    for (int64_t b = 1; b <= limit; ++b) {
      const int64_t q = q43_of_key(c.keys[b - 1]), next = time(b);
      if (first_drop_stops(q, tau, t, next)) return b - 1;
      tau += q;
      t = next;
    }
    return limit;
  }

  // Doubles decide what differs by more than 2^-50 (each product is within 2^-51.4 of exact); the rest is compared exactly.
  constexpr double kAbove = 1.0 + 0x1p-50, kBelow = 1.0 - 0x1p-50;
  int64_t best = 0, best_tau = tau, best_t = t;
  double best_tau_d = double(tau), best_t_d = double(t);
  for (int64_t b = 1; b <= limit; ++b) {
    tau += q43_of_key(c.keys[b - 1]);
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

void assign_lengths(const float* survival, const Candidates& c, const Rules& rules, int64_t admitted, int32_t* lens) {
  const bool all = admitted >= c.count;
  const uint32_t cut = all || admitted < 1 ? 0 : c.keys[admitted - 1];
  // Ties at the cut: keys[first .. last) equal it; the first `wanted` of them, by k and then by r, are admitted.
  int64_t wanted = 0;
  bool split = false;
  if (cut) {
    const auto range = std::equal_range(c.keys, c.keys + c.count, cut, std::greater<uint32_t>());
    wanted = admitted - (range.first - c.keys);
    split = range.second - c.keys != admitted;
  }
  const float at_least = cut && !split ? key_survival(cut) : rules.survival_eps;
  const float above = key_survival(cut);

  std::vector<int64_t>& ties = scratch().ties;
  if (split) ties.assign(rules.gamma + 1, 0);
  for (int64_t r = 0; r < rules.batch; ++r) {
    const float* row = survival + r * rules.gamma;
    const int32_t cap = row_cap(rules.caps, r, rules.max_verify_len);
    const int32_t floor = row_floor(rules.min_verify_len, cap);
    int32_t k = max64(floor - 1, 0);
    if (split) {
      while (k < cap - 1 && row[k] > above) ++k;
      for (int32_t tie = k; tie < cap - 1 && row[tie] == above; ++tie) ++ties[tie];
    } else if (all || cut) {
      while (k < cap - 1 && row[k] >= at_least) ++k;
    }
    lens[r] = cap > 0 ? k + 1 : 0;
  }
  if (!split) return;

  int64_t last = 0;  // ties are admitted whole for k < last, and `wanted` of them, in request order, at k = last
  while (ties[last] <= wanted) wanted -= ties[last++];
  for (int64_t r = 0; r < rules.batch; ++r) {
    const float* row = survival + r * rules.gamma;
    const int32_t cap = row_cap(rules.caps, r, rules.max_verify_len);
    int32_t k = lens[r] - 1;
    while (k >= 0 && k < cap - 1 && k < last && row[k] == above) ++k;
    if (k == last && k < cap - 1 && row[k] == above && wanted > 0) {
      --wanted;
      ++k;
    }
    if (cap > 0) lens[r] = k + 1;
  }
}

int64_t tau_of(const Candidates& c, int64_t budget) {
  int64_t tau = c.tau0;
  for (int64_t i = 0; i < budget; ++i) tau += q43_of_key(c.keys[i]);
  return tau;
}

void write_stats(int64_t* stats, const Candidates& c, const Execution& e, const Cost& cost) {
  const int64_t rows = c.min_rows + e.admitted;
  stats[0] = e.budget;
  stats[1] = rows;
  stats[2] = e.tier;
  stats[3] = tau_of(c, e.admitted);
  stats[4] = cost.step_ns ? step_time_ns(cost.step_ns, cost.length, cost.base(), rows) : 0;
}

}  // namespace dspark::cpu
