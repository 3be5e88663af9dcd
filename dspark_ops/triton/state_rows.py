"""`state_rows` and `state_blocks` in Triton: one launch each, one program per request and block of columns.

Both write a table of B rows from a few numbers per request, so they are bound by the launch and then by the store.
Everything is 64-bit: a page times its ring, or a block times its size, may leave 32 bits before it is judged.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ._counting import INT32_MAX, saturate
from ._launch import cdiv, contiguous, jit


@triton.jit
def _cell(columns, COLUMNS: tl.constexpr):
    """This program's request, its columns, and which of those exist."""
    blocks = tl.cdiv(columns, COLUMNS)
    program = tl.program_id(0)
    column = (program % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    return (program // blocks).to(tl.int64), column, column < columns


@jit
def _state_rows_kernel(
    cu_seqlens, seqused, start_pos, request_slot, req_to_token, full_to_swa, out, columns, window, ring, swa_page,
    dummy_row, slots, max_context, tokens, COLUMNS: tl.constexpr,
):  # fmt: skip
    i, column, inside = _cell(columns, COLUMNS)
    start = saturate(tl.load(start_pos + i).to(tl.int64))
    owned = tl.load(cu_seqlens + i + 1).to(tl.int64) - tl.load(cu_seqlens + i).to(tl.int64)
    position = start - window + column
    valid = inside & (tl.load(seqused + i) > 0) & (position >= 0) & (column < window + owned)
    slot = tl.load(request_slot + i).to(tl.int64)
    if req_to_token is None:
        phase = position
        group = tl.zeros_like(position) + slot
    else:
        valid = valid & (slot >= 0) & (slot < slots) & (position < max_context)
        token = tl.load(req_to_token + slot * max_context + position, mask=valid, other=-1).to(tl.int64)
        valid = valid & (token >= 0) & (token < tokens)
        phase = tl.load(full_to_swa + token, mask=valid, other=-1).to(tl.int64)
        valid = valid & (phase >= 0)
        group = tl.where(valid, phase, 0) // swa_page
    valid = valid & (group >= 0) & (group <= INT32_MAX)
    row = tl.where(valid, group, 0) * ring + tl.where(valid, phase, 0) % ring
    row = tl.where(valid & (row <= INT32_MAX), row, dummy_row)
    tl.store(out + i * columns + column, row.to(tl.int32), mask=inside)


@jit
def _state_blocks_kernel(block_table, seqused, start_pos, out, columns, ratio, coff, block_size, COLUMNS: tl.constexpr):
    i, column, inside = _cell(columns, COLUMNS)
    start = saturate(tl.load(start_pos + i).to(tl.int64))
    used = saturate(tl.load(seqused + i).to(tl.int64))
    begin = tl.maximum((start // ratio - (coff - 1)) * ratio, 0)
    position = column * block_size
    keep = inside & (used > 0) & (position < start + used) & (position + block_size > begin)
    block = tl.load(block_table + i * columns + column, mask=keep, other=0)
    tl.store(out + i * columns + column, block, mask=inside)


def _columns(columns: int) -> int:
    """Columns of one program: the smallest power of two that holds them all, from 32 to 1024."""
    return min(1024, max(32, triton.next_power_of_2(columns)))


def state_rows(
    cu_seqlens: Tensor,
    seqused: Tensor,
    start_pos: Tensor,
    request_slot: Tensor,
    req_to_token: Tensor | None,
    full_to_swa: Tensor | None,
    ratio: int,
    coff: int,
    ring: int,
    swa_page: int,
    dummy_row: int,
    out: Tensor,
) -> None:
    batch, columns = out.shape
    if batch == 0:
        return
    slots, max_context = (0, 0) if req_to_token is None else req_to_token.shape
    tensors = (contiguous(t) for t in (cu_seqlens, seqused, start_pos, request_slot, req_to_token, full_to_swa))
    width = _columns(columns)
    _state_rows_kernel[(batch * cdiv(columns, width),)](
        *tensors, out, columns, coff * ratio, ring, swa_page, dummy_row,
        slots, max_context, 0 if full_to_swa is None else full_to_swa.shape[0],
        COLUMNS=width, num_warps=max(1, width // 256),
    )  # fmt: skip


def state_blocks(
    block_table: Tensor, seqused: Tensor, start_pos: Tensor, ratio: int, coff: int, block_size: int, out: Tensor
) -> None:
    batch, columns = out.shape
    if batch * columns == 0:
        return
    width = _columns(columns)
    tensors = (contiguous(t) for t in (block_table, seqused, start_pos))
    _state_blocks_kernel[(batch * cdiv(columns, width),)](
        *tensors, out, columns, ratio, coff, block_size, COLUMNS=width, num_warps=max(1, width // 256)
    )
