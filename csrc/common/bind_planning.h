// Dispatcher arguments -> parameters of the planning operators.
#pragma once
#include "common/checks.h"

namespace dspark {

constexpr int64_t kAnyInt = int64_t(1) << 62;

inline int64_t rows_or(const OptTensor& t, int64_t otherwise) { return t ? t->size(0) : otherwise; }

inline const float* bind_survival(const Tensor& survival, int64_t& batch, int64_t& gamma) {
  STD_TORCH_CHECK(survival.dim() == 2, "survival: expected shape [B, gamma]");
  batch = survival.size(0);
  gamma = survival.size(1);
  return input<float>(survival, "survival", batch, gamma);
}

inline Confidence bind_confidence(const Tensor& values, const char* name, bool is_logits, const OptTensor& scale,
                                  const OptTensor& bias, const OptTensor& offset, const OptTensor& slots,
                                  const OptTensor& offset_slots, int64_t batch, int64_t gamma) {
  STD_TORCH_CHECK(values.dim() == 2 && values.size(1) == gamma, name, ": expected shape [rows, ", gamma, "]");
  const ScalarType dtype = values.scalar_type();
  STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::BFloat16 || dtype == ScalarType::Half, name,
                  ": expected float32, bfloat16 or float16");
  STD_TORCH_CHECK(is_logits || !(scale || bias || offset), "scale, bias, offset: need logits");
  const int64_t rows = values.size(0), offset_rows = rows_or(offset, 0);
  STD_TORCH_CHECK(slots || rows == batch, name, ": expected ", batch, " rows, got ", rows);
  STD_TORCH_CHECK(!offset || offset_slots || offset_rows == batch, "offset: expected ", batch, " elements");
  Confidence c{};
  c.values = readable(values);
  c.dtype = dtype == ScalarType::Float ? Float::f32 : dtype == ScalarType::BFloat16 ? Float::bf16 : Float::f16;
  c.is_logits = is_logits;
  c.rows = rows;
  c.slots = index_input(slots, "slots", batch);
  c.scale = input<float>(scale, "scale", gamma);
  c.bias = input<float>(bias, "bias", gamma);
  c.offset = input<float>(offset, "offset", offset_rows);
  c.offset_rows = offset_rows;
  c.offset_slots = index_input(offset_slots, "offset_slots", batch);
  return c;
}

inline Freshness bind_freshness(bool optimistic, const OptTensor& fresh, const OptTensor& generation,
                                const OptTensor& expected, int64_t batch, int64_t rows) {
  STD_TORCH_CHECK(generation.has_value() == expected.has_value(), "generation and expected: must be given together");
  STD_TORCH_CHECK(!(fresh && generation), "fresh: give either fresh or generation with expected");
  return {optimistic, input<bool>(fresh, "fresh", batch), input<int64_t>(generation, "generation", rows),
          input<int64_t>(expected, "expected", batch)};
}

inline Rules bind_rules(int64_t batch, int64_t gamma, const OptTensor& caps, int64_t min_verify_len,
                        int64_t max_verify_len, double survival_eps, int64_t max_rows) {
  check_width(batch, gamma);
  integer(max_verify_len, "max_verify_len", 0, gamma + 1);
  const int64_t longest = max_verify_len ? max_verify_len : gamma + 1;
  integer(min_verify_len, "min_verify_len", 0, longest);
  STD_TORCH_CHECK(survival_eps >= 0x1p-20 && survival_eps <= 1.0, "survival_eps: expected a number in [2^-20, 1]");
  return {batch, gamma, input<int32_t>(caps, "caps", batch), int32_t(min_verify_len), int32_t(longest),
          float(survival_eps), integer(max_rows, "max_rows", -1, kAnyInt)};
}

inline const int64_t* bind_scalar(const OptTensor& t, const char* name) {
  if (!t) return nullptr;
  STD_TORCH_CHECK(t->scalar_type() == ScalarType::Long && t->numel() == 1, name, ": expected one int64 value");
  return static_cast<const int64_t*>(t->data_ptr());
}

inline Cost bind_cost(const OptTensor& step_ns, int64_t base_ns, const OptTensor& base_ns_tensor, const Rules& rules) {
  const int64_t length = rows_or(step_ns, 0), most = rules.batch * rules.max_verify_len;
  const int64_t needed = rules.max_rows < 0 ? most : min64(most, rules.max_rows);
  STD_TORCH_CHECK(!step_ns || length > needed, "step_ns: expected more than ", needed, " entries, got ", length);
  return {input<int32_t>(step_ns, "step_ns", length), length, integer(base_ns, "base_ns", -kAnyInt, kAnyInt),
          bind_scalar(base_ns_tensor, "base_ns")};
}

inline Search bind_search(int64_t search) { return Search(integer(search, "search", 0, 1)); }

inline int64_t bind_min_gain(Search search, int64_t ppm) {
  STD_TORCH_CHECK(!(ppm && search == Search::first_drop), "min_gain_ppm: not with first_drop");
  return integer(ppm, "min_gain_ppm", 0, 1000000);
}

inline Tiers bind_tiers(const OptTensor& tiers, bool fill) {
  const int64_t count = rows_or(tiers, 0);
  STD_TORCH_CHECK(!tiers || count > 0, "tiers: expected at least one tier");
  STD_TORCH_CHECK(tiers || !fill, "fill_tier: needs tiers");
  return {input<int32_t>(tiers, "tiers", count), count, fill};
}

inline SurvivalParams bind_prefix_survival(const Tensor& values, bool is_logits, const OptTensor& scale,
                                           const OptTensor& bias, const OptTensor& offset, const OptTensor& slots,
                                           const OptTensor& offset_slots, bool optimistic, const OptTensor& fresh,
                                           const OptTensor& generation, const OptTensor& expected,
                                           const Tensor& survival, const OptTensor& calibrated) {
  STD_TORCH_CHECK(values.dim() == 2, "values: expected shape [rows, gamma]");
  const int64_t batch = rows_or(slots, values.size(0)), gamma = values.size(1);
  check_width(batch, gamma);
  SurvivalParams p{};
  p.batch = batch;
  p.gamma = gamma;
  p.confidence = bind_confidence(values, "values", is_logits, scale, bias, offset, slots, offset_slots, batch, gamma);
  p.freshness = bind_freshness(optimistic, fresh, generation, expected, batch, p.confidence.rows);
  p.survival = output<float>(survival, "survival", batch, gamma);
  p.calibrated = output<float>(calibrated, "calibrated", batch, gamma);
  return p;
}

inline PlanBudgetParams bind_plan_budget(const Tensor& survival, const Tensor& step_ns, int64_t base_ns,
                                         const OptTensor& base_ns_tensor, const OptTensor& caps,
                                         int64_t min_verify_len, int64_t max_verify_len, double survival_eps,
                                         int64_t search, int64_t max_rows, int64_t min_gain_ppm,
                                         const OptTensor& tiers, bool fill_tier, const Tensor& stats,
                                         const OptTensor& tier_tau) {
  int64_t batch, gamma;
  PlanBudgetParams p{};
  p.survival = bind_survival(survival, batch, gamma);
  p.rules = bind_rules(batch, gamma, caps, min_verify_len, max_verify_len, survival_eps, max_rows);
  p.cost = bind_cost(step_ns, base_ns, base_ns_tensor, p.rules);
  p.search = bind_search(search);
  p.min_gain_ppm = bind_min_gain(p.search, min_gain_ppm);
  p.tiers = bind_tiers(tiers, fill_tier);
  p.stats = output<int64_t>(stats, "stats", 5);
  STD_TORCH_CHECK(!tier_tau || tiers, "tier_tau: needs tiers");
  p.tier_tau = output<int64_t>(tier_tau, "tier_tau", 2, p.tiers.count);
  return p;
}

inline ScheduleParams bind_schedule_verify_lens(const Tensor& survival, int64_t budget,
                                                const OptTensor& budget_tensor, const OptTensor& step_ns,
                                                int64_t base_ns, const OptTensor& base_ns_tensor,
                                                const OptTensor& caps, int64_t min_verify_len, int64_t max_verify_len,
                                                double survival_eps, int64_t max_rows, const OptTensor& tiers,
                                                bool fill_tier, const Tensor& verify_lens, const Tensor& stats) {
  int64_t batch, gamma;
  ScheduleParams p{};
  p.survival = bind_survival(survival, batch, gamma);
  p.budget = {integer(budget, "budget", 0, kAnyInt), bind_scalar(budget_tensor, "budget")};
  p.rules = bind_rules(batch, gamma, caps, min_verify_len, max_verify_len, survival_eps, max_rows);
  p.cost = bind_cost(step_ns, base_ns, base_ns_tensor, p.rules);
  p.tiers = bind_tiers(tiers, fill_tier);
  p.verify_lens = output<int32_t>(verify_lens, "verify_lens", batch);
  p.stats = output<int64_t>(stats, "stats", 5);
  return p;
}

inline AllocateParams bind_allocate_verify_lens(
    const Tensor& values, bool is_logits, const OptTensor& scale, const OptTensor& bias, const OptTensor& offset,
    const OptTensor& slots, const OptTensor& history, const OptTensor& history_slots, const OptTensor& fresh,
    const OptTensor& generation, const OptTensor& expected, int64_t budget, const OptTensor& budget_tensor,
    const OptTensor& step_ns, int64_t base_ns, const OptTensor& base_ns_tensor, const OptTensor& caps,
    int64_t min_verify_len, int64_t max_verify_len, double survival_eps, int64_t search, int64_t max_rows,
    int64_t min_gain_ppm, const OptTensor& tiers, bool fill_tier, const Tensor& verify_lens, const Tensor& cu_seqlens,
    const Tensor& survival, const Tensor& stats, const OptTensor& calibrated) {
  AllocateParams p{};
  p.current = bind_prefix_survival(values, is_logits, scale, bias, offset, slots, slots, false, {}, {}, {}, survival,
                                   calibrated);
  const int64_t batch = p.current.batch, gamma = p.current.gamma;
  p.has_history = history.has_value();
  if (history) {
    p.history =
        bind_confidence(*history, "history", is_logits, scale, bias, offset, history_slots, slots, batch, gamma);
    p.freshness = bind_freshness(true, fresh, generation, expected, batch, p.history.rows);
  } else {
    STD_TORCH_CHECK(!(history_slots || fresh || generation || expected), "history: needed for its slots and freshness");
  }
  p.budget = {integer(budget, "budget", -1, kAnyInt), bind_scalar(budget_tensor, "budget")};
  p.rules = bind_rules(batch, gamma, caps, min_verify_len, max_verify_len, survival_eps, max_rows);
  p.cost = bind_cost(step_ns, base_ns, base_ns_tensor, p.rules);
  STD_TORCH_CHECK(p.budget.given() || step_ns, "step_ns: needed to search a budget");
  p.search = bind_search(search);
  p.min_gain_ppm = bind_min_gain(p.search, min_gain_ppm);
  p.tiers = bind_tiers(tiers, fill_tier);
  p.verify_lens = output<int32_t>(verify_lens, "verify_lens", batch);
  p.cu_seqlens = output<int32_t>(cu_seqlens, "cu_seqlens", batch + 1);
  p.stats = output<int64_t>(stats, "stats", 5);
  return p;
}

}  // namespace dspark
