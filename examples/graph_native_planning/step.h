// One planning step in device memory, and what the package's launchers are told about it. Plain C++, free of torch.
#pragma once
#include "common/params.h"

namespace dspark::example {

constexpr int kTierOfStats = 2;  // stats: budget, rows M, tier in rows or -1, tau, T

// Device pointers. They never change, so that a captured graph replays with the contents of the day.
struct Step {
  int64_t batch, gamma;
  float* confidence;    // [B, G]
  int32_t* step_ns;     // [B * N + 1]
  int32_t* tiers;       // [tier_count], strictly ascending: the sizes for which a graph was captured
  int64_t tier_count;
  int64_t most_rows;    // the largest tier, on the host
  float* survival;      // [B, G]
  int32_t* verify_lens;  // [B]
  int32_t* cu_seqlens;  // [B + 1]
  int64_t* stats;       // [5]
  int64_t* wanted;      // [5]: stats of a plan that is free to choose any tier
  int32_t* row_request;  // [most_rows]
  int32_t* row_offset;  // [most_rows]
  int32_t* executed;    // [1]: rows of the verify graph that ran
};

inline Rules rules_of(const Step& s, int64_t max_rows) {
  return {s.batch, s.gamma, nullptr, 1, int32_t(s.gamma + 1), 1e-6f, max_rows};
}

inline Cost cost_of(const Step& s) { return {s.step_ns, s.batch * (s.gamma + 1) + 1, 0, nullptr}; }

// The whole plan, free to choose any of these tiers: with max_rows at the largest of them, the tier is never -1
// unless the batch itself is larger (every request keeps a row), which the host knows beforehand.
inline AllocateParams plan_of(const Step& s, const int32_t* tiers, int64_t tier_count, int64_t max_rows) {
  AllocateParams p{};
  p.current.batch = s.batch;
  p.current.gamma = s.gamma;
  p.current.confidence.values = s.confidence;
  p.current.confidence.dtype = Float::f32;
  p.current.confidence.rows = s.batch;
  p.current.survival = s.survival;
  p.budget.value = -1;  // search it
  p.rules = rules_of(s, max_rows);
  p.cost = cost_of(s);
  p.search = Search::global;  // greedy acceptance; sampling wants first_drop, or a history
  p.tiers = {tiers, tier_count, true};
  p.verify_lens = s.verify_lens;
  p.cu_seqlens = s.cu_seqlens;
  p.stats = s.stats;
  return p;
}

inline AllocateParams plan_of(const Step& s) { return plan_of(s, s.tiers, s.tier_count, s.most_rows); }

// The tier that this step's survival asks for, whatever tier it is executed in.
inline PlanBudgetParams wanted_of(const Step& s) {
  PlanBudgetParams p{};
  p.survival = s.survival;
  p.rules = rules_of(s, s.most_rows);
  p.cost = cost_of(s);
  p.search = Search::global;
  p.tiers = {s.tiers, s.tier_count, true};
  p.stats = s.wanted;
  return p;
}

// What a verify graph of this many rows begins with: which request and draft each row belongs to.
inline RaggedLayoutParams layout_of(const Step& s, int64_t rows) {
  RaggedLayoutParams p{};
  p.verify_lens = s.verify_lens;
  p.batch = s.batch;
  p.gamma = s.gamma;
  p.rows = rows;
  p.cu_seqlens = s.cu_seqlens;
  p.row_request = s.row_request;
  p.row_offset = s.row_offset;
  return p;
}

}  // namespace dspark::example
