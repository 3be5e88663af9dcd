// Dispatcher arguments -> parameters of the compressor operators.
#pragma once
#include "common/checks.h"

namespace dspark {

inline CompressorTableParams bind_compressor_table(int64_t ratio, const Tensor& page_table, int64_t page_size,
                                                   int64_t pad_slot, const Tensor& offsets,
                                                   const Tensor& rope_position, const Tensor& query_row,
                                                   const Tensor& slot, int64_t batch, int64_t rows) {
  STD_TORCH_CHECK(page_table.dim() == 2, "page_table: expected shape [B, pages]");
  STD_TORCH_CHECK(ratio > 0 && ratio <= 0x7fffffff, "ratio: out of range");
  STD_TORCH_CHECK(page_size > 0 && page_size <= 0x7fffffff, "page_size: out of range");
  const int64_t pages = page_table.size(1), by_ratio = rows / ratio + batch, capacity = rows < by_ratio ? rows : by_ratio;
  return {ratio,
          index_input(page_table, "page_table", batch * pages),
          pages,
          page_size,
          pad_slot,
          capacity,
          output<int32_t>(offsets, "offsets", batch + 1),
          output<int64_t>(rope_position, "rope_position", capacity),
          output<int32_t>(query_row, "query_row", capacity),
          index_output(slot, "slot", capacity)};
}

inline CompressorLayoutParams bind_compressor_layout(
    const Tensor& cu_seqlens, const Tensor& seqused, const Tensor& start_pos, int64_t rows, bool clamp_seqused_kv,
    int64_t ratio, const Tensor& page_table, int64_t page_size, int64_t pad_slot, int64_t ratio2,
    const OptTensor& page_table2, int64_t page_size2, int64_t pad_slot2, const Tensor& start_pos_out,
    const Tensor& seqused_out, const Tensor& seqused_kv, const Tensor& offsets, const Tensor& rope_position,
    const Tensor& query_row, const Tensor& slot, const OptTensor& offsets2, const OptTensor& rope_position2,
    const OptTensor& query_row2, const OptTensor& slot2) {
  const int64_t batch = seqused.numel();
  STD_TORCH_CHECK(rows >= 0 && rows <= 0x7fffffff, "rows: expected an int in [0, 2^31 - 1]");
  CompressorLayoutParams p = {input<int32_t>(cu_seqlens, "cu_seqlens", batch + 1),
                              input<int32_t>(seqused, "seqused", batch),
                              index_input(start_pos, "start_pos", batch),
                              batch,
                              rows,
                              clamp_seqused_kv,
                              output<int32_t>(start_pos_out, "start_pos_out", batch),
                              output<int32_t>(seqused_out, "seqused_out", batch),
                              output<int32_t>(seqused_kv, "seqused_kv", batch),
                              1,
                              {}};
  p.table[0] = bind_compressor_table(ratio, page_table, page_size, pad_slot, offsets, rope_position, query_row, slot,
                                     batch, rows);
  if (page_table2) {
    STD_TORCH_CHECK(offsets2 && rope_position2 && query_row2 && slot2, "page_table2: needs the second set of outputs");
    p.tables = 2;
    p.table[1] = bind_compressor_table(ratio2, *page_table2, page_size2, pad_slot2, *offsets2, *rope_position2,
                                       *query_row2, *slot2, batch, rows);
  }
  return p;
}

inline StateRowsParams bind_state_rows(const Tensor& cu_seqlens, const Tensor& seqused, const Tensor& start_pos,
                                       const Tensor& request_slot, const OptTensor& req_to_token,
                                       const OptTensor& full_to_swa, int64_t ratio, int64_t coff, int64_t ring,
                                       int64_t swa_page, int64_t dummy_row, const Tensor& state_rows) {
  const int64_t batch = seqused.numel(), limit = 0x7fffffff;
  STD_TORCH_CHECK(ratio > 0 && coff > 0 && ratio <= limit && coff <= limit, "ratio, coff: out of range");
  STD_TORCH_CHECK(ring > 0 && ring <= limit, "ring: out of range");
  STD_TORCH_CHECK(swa_page >= 0 && bool(req_to_token) == (swa_page > 0) && bool(full_to_swa) == (swa_page > 0),
                  "req_to_token, full_to_swa, swa_page: expected all of them or none");
  STD_TORCH_CHECK(!req_to_token || req_to_token->dim() == 2, "req_to_token: expected shape [slots, max_context]");
  STD_TORCH_CHECK(state_rows.dim() == 2 && state_rows.size(1) >= coff * ratio,
                  "out: expected shape [B, coff * ratio + N]");
  const int64_t slots = req_to_token ? req_to_token->size(0) : 0, context = req_to_token ? req_to_token->size(1) : 0;
  const int64_t tokens = full_to_swa ? full_to_swa->numel() : 0, columns = state_rows.size(1);
  return {input<int32_t>(cu_seqlens, "cu_seqlens", batch + 1),
          input<int32_t>(seqused, "seqused", batch),
          index_input(start_pos, "start_pos", batch),
          index_input(request_slot, "request_slot", batch),
          input<int32_t>(req_to_token, "req_to_token", slots * context),
          index_input(full_to_swa, "full_to_swa", tokens),
          slots,
          context,
          tokens,
          batch,
          coff * ratio,
          columns - coff * ratio,
          ring,
          swa_page,
          int32_t(dummy_row),
          output<int32_t>(state_rows, "out", batch * columns)};
}

inline StateBlocksParams bind_state_blocks(const Tensor& block_table, const Tensor& seqused, const Tensor& start_pos,
                                           int64_t ratio, int64_t coff, int64_t block_size,
                                           const Tensor& state_blocks) {
  const int64_t batch = seqused.numel(), limit = 0x7fffffff;
  STD_TORCH_CHECK(ratio > 0 && coff > 0 && block_size > 0, "ratio, coff, block_size: must be positive");
  STD_TORCH_CHECK(ratio <= limit && coff <= limit && block_size <= limit, "ratio, coff, block_size: out of range");
  STD_TORCH_CHECK(block_table.dim() == 2, "block_table: expected shape [B, blocks]");
  const int64_t blocks = block_table.size(1), ids = batch * blocks;
  const ScalarType dtype = block_table.scalar_type();
  index_input(block_table, "block_table", ids);
  return {bytes_of(block_table, "block_table", dtype, ids),
          input<int32_t>(seqused, "seqused", batch),
          index_input(start_pos, "start_pos", batch),
          batch,
          blocks,
          int64_t(block_table.element_size()),
          ratio,
          coff,
          block_size,
          bytes_of(state_blocks, "out", dtype, ids)};
}

inline MaxSafeVerifyLenParams bind_max_safe_verify_len(const Tensor& start_pos, int64_t ratio, int64_t coff,
                                                       int64_t ring, int64_t max_verify_len, const Tensor& safe_lens) {
  STD_TORCH_CHECK(ratio > 0 && coff > 0 && max_verify_len > 0, "ratio, coff and max_verify_len: must be positive");
  const int64_t batch = start_pos.numel();
  return {index_input(start_pos, "start_pos", batch), batch, ratio, coff, ring, max_verify_len,
          output<int32_t>(safe_lens, "safe_lens", batch)};
}

}  // namespace dspark
