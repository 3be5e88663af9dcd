// Dispatcher arguments -> parameters of the layout operators.
#pragma once
#include "common/checks.h"

namespace dspark {

inline RaggedLayoutParams bind_ragged_layout(const Tensor& verify_lens, const OptTensor& prefix,
                                             const OptTensor& root_tokens, const OptTensor& draft_tokens,
                                             const Tensor& cu_seqlens, const Tensor& row_request,
                                             const Tensor& row_offset, const OptTensor& position,
                                             const OptTensor& verify_ids, const OptTensor& cache_seqlens,
                                             const OptTensor& cu_seqlens_k) {
  const int64_t batch = verify_lens.numel(), rows = integer(row_request.numel(), "rows", 0, INT32_MAX);
  STD_TORCH_CHECK(prefix || !(position || cache_seqlens || cu_seqlens_k), "prefix: needed by a requested output");
  STD_TORCH_CHECK(root_tokens.has_value() == draft_tokens.has_value(), "root_tokens, draft_tokens: give both or neither");
  STD_TORCH_CHECK(draft_tokens || !verify_ids, "root_tokens, draft_tokens: needed by verify_ids");
  STD_TORCH_CHECK(!draft_tokens || draft_tokens->dim() == 2, "draft_tokens: expected shape [B, gamma]");
  const int64_t gamma = draft_tokens ? draft_tokens->size(1) : 0;
  if (draft_tokens) check_width(batch, gamma);
  return {input<int32_t>(verify_lens, "verify_lens", batch),
          index_input(prefix, "prefix", batch),
          input<int64_t>(root_tokens, "root_tokens", batch),
          input<int64_t>(draft_tokens, "draft_tokens", batch, gamma),
          batch,
          gamma,
          rows,
          output<int32_t>(cu_seqlens, "cu_seqlens", batch + 1),
          output<int32_t>(row_request, "row_request", rows),
          output<int32_t>(row_offset, "row_offset", rows),
          output<int64_t>(position, "position", rows),
          output<int64_t>(verify_ids, "verify_ids", rows),
          output<int32_t>(cache_seqlens, "cache_seqlens", batch),
          output<int32_t>(cu_seqlens_k, "cu_seqlens_k", batch + 1)};
}

inline PadToBucketParams bind_pad_to_bucket(const Tensor& verify_lens, int64_t rows, int64_t cap, const Tensor& padded,
                                            const Tensor& seqused) {
  const int64_t batch = verify_lens.numel(), slots = padded.numel();
  STD_TORCH_CHECK(slots >= batch, "padded: expected a slot per request, got ", slots, " for ", batch);
  return {input<int32_t>(verify_lens, "verify_lens", batch),
          batch,
          slots,
          integer(rows, "rows", 0, INT32_MAX),
          integer(cap, "cap", -1, INT32_MAX),
          output<int32_t>(padded, "padded", slots),
          output<int32_t>(seqused, "seqused", slots)};
}

// Between compact [rows, ...] and strided [B * width, ...], whose rows have one dtype and shape.
inline MoveRowsParams bind_move(const Tensor& source, const Tensor& destination, const Tensor& cu_seqlens,
                                int64_t width, int64_t rows, int64_t fill) {
  STD_TORCH_CHECK(destination.is_contiguous(), "out: an output must be contiguous");
  const int64_t batch = cu_seqlens.numel() - 1, element = int64_t(source.element_size());
  STD_TORCH_CHECK(batch * width <= kMaxVerifyRows, "B*N: expected at most ", kMaxVerifyRows, " rows");
  int64_t row_bytes = element;
  for (int64_t d = 1; d < source.dim(); ++d) row_bytes *= source.size(d);
  return {static_cast<const uint8_t*>(readable(source)),
          input<int32_t>(cu_seqlens, "cu_seqlens", batch + 1),
          batch,
          width,
          integer(rows, "rows", 0, INT32_MAX),
          row_bytes,
          element,
          fill,
          static_cast<uint8_t*>(destination.data_ptr())};
}

inline MoveRowsParams bind_scatter_to_strided(const Tensor& compact, const Tensor& cu_seqlens, int64_t width,
                                              int64_t fill, const Tensor& strided) {
  STD_TORCH_CHECK(compact.dim() >= 1, "compact: expected shape [R, ...]");
  STD_TORCH_CHECK(cu_seqlens.numel() >= 1, "cu_seqlens: expected B + 1 values");
  integer(width, "width", 1, kMaxVerifyRows);
  require_rows(strided, "out", compact, (cu_seqlens.numel() - 1) * width);
  return bind_move(compact, strided, cu_seqlens, width, compact.size(0), fill);
}

inline MoveRowsParams bind_gather_from_strided(const Tensor& strided, const Tensor& cu_seqlens, int64_t fill,
                                               const Tensor& compact) {
  STD_TORCH_CHECK(strided.dim() >= 1 && compact.dim() >= 1, "strided, out: expected shape [rows, ...]");
  STD_TORCH_CHECK(cu_seqlens.numel() >= 1, "cu_seqlens: expected B + 1 values");
  const int64_t batch = cu_seqlens.numel() - 1, strided_rows = strided.size(0);
  const int64_t width = batch > 0 ? strided_rows / batch : 0;
  STD_TORCH_CHECK(strided_rows == batch * width, "strided: expected the same number of rows per request");
  require_rows(compact, "out", strided, compact.size(0));
  return bind_move(strided, compact, cu_seqlens, width, compact.size(0), fill);
}

}  // namespace dspark
