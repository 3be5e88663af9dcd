// What each operator's kernel receives: plain data, filled once by common/bind_*.h, read by every back end.
// A comment gives the shape of each pointer. B requests, G = gamma drafts each, N = G + 1, R row capacity.
#pragma once
#include <stdint.h>

#include "common/order.h"

namespace dspark {

// An int32 or int64 index array; null means the identity.
struct Index {
  const void* data;
  bool is_int64;
  DSPARK_FN explicit operator bool() const { return data != nullptr; }
  DSPARK_FN int64_t operator[](int64_t i) const {
    return is_int64 ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

// An int32 or int64 array to write into.
struct IndexOutput {
  void* data;
  bool is_int64;
  DSPARK_FN explicit operator bool() const { return data != nullptr; }
  DSPARK_FN void set(int64_t i, int64_t value) const {
    if (is_int64) static_cast<int64_t*>(data)[i] = value;
    else static_cast<int32_t*>(data)[i] = int32_t(value);
  }
};

enum class Float : int32_t { f32 = 0, bf16 = 1, f16 = 2 };

// ---- planning: survival, budget, verify lengths ----

// Confidences, or logits with a calibration c = sigmoid(scale_k * z + bias_k + offset_r).
struct Confidence {
  const void* values;  // [rows, G]
  Float dtype;
  bool is_logits;
  int64_t rows;
  Index slots;          // [B] or null: the row of request r
  const float* scale;   // [G] or null
  const float* bias;    // [G] or null
  const float* offset;  // [offset_rows] or null
  int64_t offset_rows;
  Index offset_slots;  // [B] or null
};

// With `optimistic`, a row that is missing or not fresh counts as survival 1.
struct Freshness {
  bool optimistic;
  const bool* fresh;          // [B] or null
  const int64_t* generation;  // [rows] or null
  const int64_t* expected;    // [B], with generation
};

struct SurvivalParams {
  int64_t batch, gamma;
  Confidence confidence;
  Freshness freshness;
  float* survival;    // [B, G]
  float* calibrated;  // [B, G] or null
};

// Which drafts may be verified.
struct Rules {
  int64_t batch, gamma;
  const int32_t* caps;  // [B] or null
  int32_t min_verify_len, max_verify_len;
  float survival_eps;
  int64_t max_rows;  // -1: no bound
};

// T(M) = base + step_ns[M].
struct Cost {
  const int32_t* step_ns;  // [length] or null
  int64_t length;
  int64_t base_ns;
  const int64_t* base_ns_scalar;  // [1] or null; replaces base_ns
  DSPARK_FN int64_t base() const { return base_ns_scalar ? *base_ns_scalar : base_ns; }
};

enum class Search : int32_t { global = 0, first_drop = 1 };

struct Tiers {
  const int32_t* rows;  // [count] or null, ascending
  int64_t count;
  bool fill;
};

// A budget that is given instead of searched.
struct Budget {
  int64_t value;          // used when >= 0 and there is no scalar
  const int64_t* scalar;  // [1] or null
  DSPARK_FN bool given() const { return scalar || value >= 0; }
  DSPARK_FN int64_t get() const { return scalar ? *scalar : value; }
};

struct PlanBudgetParams {
  const float* survival;  // [B, G]
  Rules rules;
  Cost cost;
  Search search;
  int64_t min_gain_ppm;
  Tiers tiers;
  int64_t* stats;     // [5]
  int64_t* tier_tau;  // [2, tiers.count] or null
};

struct ScheduleParams {
  const float* survival;  // [B, G]
  Budget budget;
  Rules rules;
  Cost cost;
  Tiers tiers;
  int32_t* verify_lens;  // [B]
  int64_t* stats;        // [5]
};

struct AllocateParams {
  SurvivalParams current;
  bool has_history;
  Confidence history;
  Freshness freshness;  // of the history
  Budget budget;
  Rules rules;
  Cost cost;
  Search search;
  int64_t min_gain_ppm;
  Tiers tiers;
  int32_t* verify_lens;  // [B]
  int32_t* cu_seqlens;   // [B + 1]
  int64_t* stats;        // [5]
};

// ---- ragged layout, bucket padding, scatter and gather ----

struct RaggedLayoutParams {
  const int32_t* verify_lens;   // [B]
  Index prefix;                 // [B] or null
  const int64_t* root_tokens;   // [B] or null
  const int64_t* draft_tokens;  // [B, G] or null
  int64_t batch, gamma, rows;
  int32_t* cu_seqlens;     // [B + 1]
  int32_t* row_request;    // [R]
  int32_t* row_offset;     // [R]
  int64_t* position;       // [R] or null
  int64_t* verify_ids;     // [R] or null
  int32_t* cache_seqlens;  // [B] or null
  int32_t* cu_seqlens_k;   // [B + 1] or null
};

struct PadToBucketParams {
  const int32_t* verify_lens;  // [B]
  int64_t batch, slots, rows;
  int64_t cap;       // below 0: none
  int32_t* padded;   // [slots]
  int32_t* seqused;  // [slots]
};

// Rows are moved as bytes: D = row_bytes.
struct MoveRowsParams {
  const uint8_t* source;      // scatter: compact [R, D]; gather: strided [B * N, D]
  const int32_t* cu_seqlens;  // [B + 1]
  int64_t batch, width, rows, row_bytes, element_bytes;
  int64_t fill;       // bit pattern of one element, its low bytes first
  uint8_t* destination;  // scatter: strided [B * N, D]; gather: compact [R, D]
};

// ---- compressor layout and state ----

// One ratio of compressor_layout; C = min(R, R / ratio + B) entries.
struct CompressorTableParams {
  int64_t ratio;
  Index page_table;  // [B, pages]
  int64_t pages, page_size, pad_slot, capacity;
  int32_t* offsets;        // [B + 1]
  int64_t* rope_position;  // [C]
  int32_t* query_row;      // [C]
  IndexOutput slot;        // [C]
};

struct CompressorLayoutParams {
  const int32_t* cu_seqlens;  // [B + 1]
  const int32_t* seqused;     // [B]
  Index start_pos;            // [B]
  int64_t batch, rows;
  bool clamp_seqused_kv;
  int32_t* start_pos_out;  // [B]
  int32_t* seqused_out;    // [B]
  int32_t* seqused_kv;     // [B]
  int tables;
  CompressorTableParams table[2];
};

struct StateRowsParams {
  const int32_t* cu_seqlens;    // [B + 1]
  const int32_t* seqused;       // [B]
  Index start_pos;              // [B]
  Index request_slot;           // [B]
  const int32_t* req_to_token;  // [slots, max_context]
  Index full_to_swa;            // [tokens]
  int64_t slots, max_context, tokens;
  int64_t batch, window, width, ring;  // window = coff * ratio columns before the new tokens
  int64_t swa_page;                    // 0: the ring belongs to the request slot, and there are no token maps
  int32_t dummy_row;
  int32_t* state_rows;  // [B, window + width]
};

struct StateBlocksParams {
  const uint8_t* block_table;  // [B, blocks] of id_bytes each
  const int32_t* seqused;      // [B]
  Index start_pos;             // [B]
  int64_t batch, blocks, id_bytes, ratio, coff, block_size;
  uint8_t* state_blocks;  // as block_table
};

struct MaxSafeVerifyLenParams {
  Index start_pos;  // [B]
  int64_t batch, ratio, coff, ring, max_verify_len;
  int32_t* safe_lens;  // [B]
};

// ---- acceptance ----

// What an offset learns from and how fast. A null offset learns nothing.
struct LearningParams {
  const float* confidence;  // [B, G]
  Index slots;              // [B] or null: request r owns offset[r]
  int64_t num_slots;
  float decay, eta, limit;
  float* offset;  // [num_slots]
};

struct UpdateOffsetParams {
  LearningParams learning;
  const int32_t* correct_len;  // [B]
  const int32_t* verify_lens;  // [B]
  int64_t batch, gamma;
};

struct AcceptParams {
  const int32_t* raw_correct_len;  // [B]; null: greedy, compare with the target
  const int64_t* draft_tokens;     // [B, G]
  const int64_t* target_tokens;    // [B, N], or [target_rows] with cu_seqlens; null: bonus_tokens is given
  const int64_t* bonus_tokens;     // [B] or null
  const int32_t* cu_seqlens;       // [B + 1] or null
  const int32_t* verify_lens;      // [B]
  Index prefix;                    // [B] or null
  LearningParams learning;
  int64_t batch, gamma, target_rows;
  int32_t* correct_len;     // [B]
  int32_t* trimmed;         // [B]
  int64_t* bonus;           // [B]
  int32_t* commit_len;      // [B]
  IndexOutput new_seq_len;  // [B], or null without prefix
  int64_t* out_tokens;      // [B, N]
};

}  // namespace dspark
