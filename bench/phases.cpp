// Where the time of one allocate_verify_lens goes on the CPU: the native code alone, one thread, medians in microseconds.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/planning.h"

using namespace dspark;
using namespace dspark::cpu;

namespace {

constexpr int kInputs = 8, kRuns = 2001;

template <class F>
double median_us(F call) {
  std::vector<double> us(kRuns);
  for (int i = 0; i < 20; ++i) call(i);
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call(i);
    us[i] = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  }
  std::nth_element(us.begin(), us.begin() + kRuns / 2, us.end());
  return us[kRuns / 2];
}

struct Bench {
  int64_t batch, gamma;
  std::vector<std::vector<float>> now, old;
  std::vector<float> survival;
  std::vector<int32_t> step_ns, lens, cu;
  int64_t stats[5];

  Bench(int64_t batch, int64_t gamma)
      : batch(batch), gamma(gamma), now(kInputs), old(kInputs), survival(batch * gamma),
        step_ns(batch * (gamma + 1) + 1), lens(batch), cu(batch + 1) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(0, 1);
    for (auto* inputs : {&now, &old})
      for (auto& values : *inputs)
        for (int64_t i = 0; i < batch * gamma; ++i) values.push_back(std::pow(uniform(random), 0.3f));
    for (size_t m = 0; m < step_ns.size(); ++m) step_ns[m] = int32_t(12'000'000 + m * (12'000'000 / step_ns.size()));
  }

  AllocateParams params(int i, bool history) {
    AllocateParams p{};
    p.current.batch = batch;
    p.current.gamma = gamma;
    p.current.confidence.values = now[i % kInputs].data();
    p.current.confidence.rows = batch;
    p.current.survival = survival.data();
    p.has_history = history;
    p.history = p.current.confidence;
    p.history.values = old[i % kInputs].data();
    p.freshness.optimistic = true;
    p.budget = {-1, nullptr};
    p.rules = {batch, gamma, nullptr, 1, int32_t(gamma + 1), 1e-6f, -1};
    p.cost = {step_ns.data(), int64_t(step_ns.size()), 0, nullptr};
    p.verify_lens = lens.data();
    p.cu_seqlens = cu.data();
    p.stats = stats;
    return p;
  }

  void run() {
    const double whole = median_us([&](int i) { allocate_verify_lens(params(i, false)); });
    const int64_t budget = stats[0];
    const double with_history = median_us([&](int i) { allocate_verify_lens(params(i, true)); });
    const double product = median_us([&](int i) { prefix_survival(params(i, false).current); });
    const Rules rules = params(0, false).rules;
    const Cost cost = params(0, false).cost;
    Candidates c;
    const double gather = median_us([&](int) { c = find_candidates(survival.data(), rules); });
    const double selected = median_us([&](int) { cut_unsorted(find_candidates(survival.data(), rules), budget); });
    const double sorted = median_us([&](int) { sort_keys(c = find_candidates(survival.data(), rules)); });
    const double search = median_us([&](int) { search_budget(c, rules, cost, Search::global, 0); });
    const double lengths =
        median_us([&](int) { assign_lengths(survival.data(), rules, cut_sorted(c, budget), lens.data()); });
    std::printf("%lld %lld %lld %.2f %.2f %.2f %.2f %.2f %.2f %.2f %.2f\n", (long long)batch, (long long)gamma,
                (long long)c.count, product, gather, sorted - gather, selected - gather, search, lengths, whole,
                with_history);
  }
};

}  // namespace

int main() {
  for (auto [batch, gamma] : {std::pair{8, 7}, {64, 7}, {256, 7}, {1024, 15}}) Bench(batch, gamma).run();
}
