// Dispatcher arguments -> parameters of the compressor operators.
#pragma once
#include "common/checks.h"

namespace dspark {

inline Index index_matrix(const Tensor& t, const char* name, int64_t rows, int64_t columns) {
  const bool is_int64 = t.scalar_type() == ScalarType::Long;
  require(t, name, is_int64 ? ScalarType::Long : ScalarType::Int, rows, columns);
  return {readable(t), is_int64};
}

inline int64_t bind_window(int64_t ratio, int64_t coff) {
  return integer(coff, "coff", 1, 16) * integer(ratio, "ratio", 1, 1 << 20);
}

inline CompressorTableParams bind_compressor_table(int64_t ratio, const Tensor& page_table, int64_t page_size,
                                                   int64_t pad_slot, const Tensor& offsets,
                                                   const Tensor& rope_position, const Tensor& query_row,
                                                   const Tensor& slot, int64_t batch, int64_t rows) {
  STD_TORCH_CHECK(page_table.dim() == 2, "page_table: expected shape [B, pages]");
  integer(ratio, "ratio", 1, 1 << 20);
  const int64_t pages = page_table.size(1), capacity = min64(rows, rows / ratio + batch);
  const bool is_int64 = slot.scalar_type() == ScalarType::Long;
  return {ratio,
          index_matrix(page_table, "page_table", batch, pages),
          pages,
          integer(page_size, "page_size", 1, INT32_MAX),
          is_int64 ? pad_slot : integer(pad_slot, "pad_slot", INT32_MIN, INT32_MAX),
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
  integer(rows, "rows", 0, INT32_MAX);
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
  const int64_t batch = seqused.numel(), window = bind_window(ratio, coff);
  STD_TORCH_CHECK(bool(req_to_token) == (swa_page > 0) && bool(full_to_swa) == (swa_page > 0),
                  "req_to_token, full_to_swa, swa_page: expected all of them or none");
  STD_TORCH_CHECK(!req_to_token || req_to_token->dim() == 2, "req_to_token: expected shape [slots, max_context]");
  STD_TORCH_CHECK(state_rows.dim() == 2, "out: expected shape [B, coff * ratio + N]");
  const int64_t slots = req_to_token ? req_to_token->size(0) : 0, context = req_to_token ? req_to_token->size(1) : 0;
  const int64_t tokens = full_to_swa ? full_to_swa->numel() : 0, columns = state_rows.size(1);
  return {input<int32_t>(cu_seqlens, "cu_seqlens", batch + 1),
          input<int32_t>(seqused, "seqused", batch),
          index_input(start_pos, "start_pos", batch),
          index_input(request_slot, "request_slot", batch),
          input<int32_t>(req_to_token, "req_to_token", slots, context),
          index_input(full_to_swa, "full_to_swa", tokens),
          slots,
          context,
          tokens,
          batch,
          window,
          integer(columns - window, "max_verify_len", 1, kMaxVerifyRows),
          integer(ring, "ring", 1, INT32_MAX),
          integer(swa_page, "swa_page", 0, INT32_MAX),
          int32_t(integer(dummy_row, "dummy_row", INT32_MIN, INT32_MAX)),
          output<int32_t>(state_rows, "out", batch, columns)};
}

inline StateBlocksParams bind_state_blocks(const Tensor& block_table, const Tensor& seqused, const Tensor& start_pos,
                                           int64_t ratio, int64_t coff, int64_t block_size,
                                           const Tensor& state_blocks) {
  const int64_t batch = seqused.numel();
  bind_window(ratio, coff);
  STD_TORCH_CHECK(block_table.dim() == 2, "block_table: expected shape [B, blocks]");
  const int64_t blocks = block_table.size(1);
  const Index ids = index_matrix(block_table, "block_table", batch, blocks);
  require_rows(state_blocks, "out", block_table, batch);
  STD_TORCH_CHECK(state_blocks.is_contiguous(), "out: an output must be contiguous");
  return {static_cast<const uint8_t*>(ids.data),
          input<int32_t>(seqused, "seqused", batch),
          index_input(start_pos, "start_pos", batch),
          batch,
          blocks,
          ids.is_int64 ? 8 : 4,
          ratio,
          coff,
          integer(block_size, "block_size", 1, INT32_MAX),
          static_cast<uint8_t*>(state_blocks.data_ptr())};
}

inline MaxSafeVerifyLenParams bind_max_safe_verify_len(const Tensor& start_pos, int64_t ratio, int64_t coff,
                                                       int64_t ring, int64_t max_verify_len, const Tensor& safe_lens) {
  const int64_t batch = start_pos.size(0);
  return {index_input(start_pos, "start_pos", batch), batch, integer(ratio, "ratio", 1, 1 << 20),
          integer(coff, "coff", 1, 16), integer(ring, "ring", 0, INT32_MAX),
          integer(max_verify_len, "max_verify_len", 1, kMaxVerifyRows),
          output<int32_t>(safe_lens, "safe_lens", batch)};
}

}  // namespace dspark
