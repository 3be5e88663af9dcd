// What each operator's kernel receives: plain data, filled once by common/bind_*.h, read by every back end.
// A comment gives the shape of each pointer. B requests, G = gamma drafts each, N = G + 1, R row capacity.
#pragma once
#include <stdint.h>

namespace dspark {

// An int32 or int64 index array; null means the identity.
struct Index {
  const void* data;
  bool is_int64;
  explicit operator bool() const { return data != nullptr; }
  int64_t operator[](int64_t i) const {
    return is_int64 ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

// An int32 or int64 array to write into.
struct IndexOutput {
  void* data;
  bool is_int64;
  explicit operator bool() const { return data != nullptr; }
  void set(int64_t i, int64_t value) const {
    if (is_int64) static_cast<int64_t*>(data)[i] = value;
    else static_cast<int32_t*>(data)[i] = int32_t(value);
  }
};

enum class Float : int32_t { f32 = 0, bf16 = 1, f16 = 2 };

// ---- planning: survival, budget, verify lengths ----

// ---- ragged layout, bucket padding, scatter and gather ----

// ---- compressor layout and state ----

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
