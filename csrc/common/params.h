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

// An int32 or int64 output array.
struct IndexOut {
  void* data;
  bool is_int64;
  void set(int64_t i, int64_t value) const {
    if (is_int64) static_cast<int64_t*>(data)[i] = value;
    else static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
  }
};

enum class Float : int32_t { f32 = 0, bf16 = 1, f16 = 2 };

// ---- planning: survival, budget, verify lengths ----

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
  IndexOut slot;           // [C]
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

}  // namespace dspark
