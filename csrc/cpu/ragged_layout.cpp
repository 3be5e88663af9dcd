#include <algorithm>

#include "common/order.h"
#include "cpu/kernels.h"

namespace dspark::cpu {

namespace {

// Prefix plus offset; a senseless prefix wraps instead of overflowing.
inline int64_t position_of(int64_t prefix, int64_t offset) { return int64_t(uint64_t(prefix) + uint64_t(offset)); }

void write_rows(const RaggedLayoutParams& p, int64_t request, int64_t begin, int64_t end) {
  const int64_t count = end - begin;
  for (int64_t k = 0; k < count; ++k) {
    p.row_request[begin + k] = int32_t(request);
    p.row_offset[begin + k] = int32_t(k);
  }
  if (p.position) {
    const int64_t prefix = p.prefix[request];
    for (int64_t k = 0; k < count; ++k) p.position[begin + k] = position_of(prefix, k);
  }
  if (p.verify_ids) {
    int64_t* ids = p.verify_ids + begin;
    const int64_t drafts = min64(count - 1, p.gamma);
    ids[0] = p.root_tokens[request];
    std::copy_n(p.draft_tokens + request * p.gamma, drafts, ids + 1);
    std::fill(ids + 1 + drafts, ids + count, int64_t(0));
  }
}

}  // namespace

void ragged_layout(const RaggedLayoutParams& p) {
  int64_t total = 0, total_k = 0;
  p.cu_seqlens[0] = 0;
  if (p.cu_seqlens_k) p.cu_seqlens_k[0] = 0;
  for (int64_t i = 0; i < p.batch; ++i) {
    const int64_t length = max64(p.verify_lens[i], 0), begin = total;
    total = saturate32(begin + length);
    p.cu_seqlens[i + 1] = int32_t(total);
    if (begin < min64(total, p.rows)) write_rows(p, i, begin, min64(total, p.rows));
    if (!p.prefix) continue;
    const int64_t bound = int64_t(1) << 32;
    const int32_t cached = saturate32(clamp64(p.prefix[i], -bound, bound) + length);
    if (p.cache_seqlens) p.cache_seqlens[i] = cached;
    total_k = saturate32(total_k + cached);
    if (p.cu_seqlens_k) p.cu_seqlens_k[i + 1] = int32_t(total_k);
  }
  const int64_t used = min64(total, p.rows), padding = p.rows - used;
  std::fill_n(p.row_request + used, padding, -1);
  std::fill_n(p.row_offset + used, padding, 0);
  if (p.position) std::fill_n(p.position + used, padding, int64_t(0));
  if (p.verify_ids) std::fill_n(p.verify_ids + used, padding, int64_t(0));
}

}  // namespace dspark::cpu
