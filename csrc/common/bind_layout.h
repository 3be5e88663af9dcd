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
  const int64_t batch = verify_lens.numel(), rows = row_request.numel();
  STD_TORCH_CHECK(rows <= 0x7fffffff, "row_request: at most 2^31 - 1 rows");
  STD_TORCH_CHECK(prefix || !(position || cache_seqlens || cu_seqlens_k), "prefix: needed by a requested output");
  STD_TORCH_CHECK((root_tokens && draft_tokens) || !verify_ids, "root_tokens, draft_tokens: needed by verify_ids");
  STD_TORCH_CHECK(!draft_tokens || draft_tokens->dim() == 2, "draft_tokens: expected shape [B, gamma]");
  const int64_t gamma = draft_tokens ? draft_tokens->size(1) : 0;
  return {input<int32_t>(verify_lens, "verify_lens", batch),
          index_input(prefix, "prefix", batch),
          input<int64_t>(root_tokens, "root_tokens", batch),
          input<int64_t>(draft_tokens, "draft_tokens", batch * gamma),
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
  STD_TORCH_CHECK(rows >= 0 && rows <= 0x7fffffff, "rows: expected an int in [0, 2^31 - 1]");
  return {input<int32_t>(verify_lens, "verify_lens", batch), batch, slots, rows, cap,
          output<int32_t>(padded, "padded", slots), output<int32_t>(seqused, "seqused", slots)};
}

inline MoveRowsParams bind_move_rows(const Tensor& source, const Tensor& cu_seqlens, int64_t width, int64_t rows,
                                     int64_t fill, const Tensor& destination, int64_t source_rows,
                                     int64_t destination_rows) {
  STD_TORCH_CHECK(cu_seqlens.numel() >= 1, "cu_seqlens: expected B + 1 elements");
  STD_TORCH_CHECK(width >= 0 && width <= 0x7fffffff, "width: out of range");
  const int64_t batch = cu_seqlens.numel() - 1, element = int64_t(source.element_size());
  int64_t row = 1;
  for (int64_t d = 1; d < source.dim(); ++d) row *= source.size(d);
  return {bytes_of(source, "source", source.scalar_type(), source_rows * row),
          input<int32_t>(cu_seqlens, "cu_seqlens", batch + 1),
          batch,
          width,
          rows,
          row * element,
          element,
          fill,
          bytes_of(destination, "out", source.scalar_type(), destination_rows * row)};
}

inline MoveRowsParams bind_scatter_to_strided(const Tensor& compact, const Tensor& cu_seqlens, int64_t width,
                                              int64_t fill, const Tensor& strided) {
  STD_TORCH_CHECK(compact.dim() >= 1, "compact: expected shape [R, ...]");
  const int64_t rows = compact.size(0), batch = cu_seqlens.numel() - 1;
  return bind_move_rows(compact, cu_seqlens, width, rows, fill, strided, rows, batch * width);
}

inline MoveRowsParams bind_gather_from_strided(const Tensor& strided, const Tensor& cu_seqlens, int64_t fill,
                                               const Tensor& compact) {
  STD_TORCH_CHECK(strided.dim() >= 1 && compact.dim() >= 1, "strided, out: expected shape [rows, ...]");
  const int64_t batch = cu_seqlens.numel() - 1, rows = compact.size(0);
  const int64_t width = batch > 0 ? strided.size(0) / batch : 0;
  return bind_move_rows(strided, cu_seqlens, width, rows, fill, compact, batch * width, rows);
}

}  // namespace dspark
