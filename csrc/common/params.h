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

}  // namespace dspark
