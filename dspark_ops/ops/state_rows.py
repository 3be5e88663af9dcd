"""`state_rows` and `state_blocks`: where a compressor finds and keeps its state (DESIGN 3.7)."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.state_rows import state_blocks as reference_blocks
from ..reference.state_rows import state_rows as reference_rows

_MAX = (1 << 31) - 1


def _check_window(ratio: int, coff: int) -> None:
    _checks.integer("ratio", ratio, 1, 1 << 20)
    _checks.integer("coff", coff, 1, 16)


def _check_rows(
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
    _checks.tensor("seqused", seqused, torch.int32, ["B"])
    batch, device = seqused.shape[0], seqused.device
    _checks.tensor("cu_seqlens", cu_seqlens, torch.int32, [batch + 1], device)
    _checks.tensor("start_pos", start_pos, _checks.INDEX_DTYPES, [batch], device)
    _checks.tensor("request_slot", request_slot, _checks.INDEX_DTYPES, [batch], device)
    _check_window(ratio, coff)
    _checks.integer("ring", ring, 1, _MAX)
    _checks.integer("dummy_row", dummy_row, -_MAX - 1, _MAX)
    if (req_to_token is None) != (full_to_swa is None) or (req_to_token is None) != (swa_page == 0):
        raise ValueError("req_to_token, full_to_swa, swa_page: expected all of them or none")
    _checks.optional("req_to_token", req_to_token, torch.int32, ["slots", "max_context"], device)
    _checks.optional("full_to_swa", full_to_swa, _checks.INDEX_DTYPES, ["tokens"], device)
    _checks.integer("swa_page", swa_page, 0, _MAX)
    _checks.output("out", out, torch.int32, [batch, "coff*ratio + N"], device)
    _checks.integer("max_verify_len", out.shape[1] - coff * ratio, 1, _checks.MAX_VERIFY_ROWS)


def _check_blocks(
    block_table: Tensor, seqused: Tensor, start_pos: Tensor, ratio: int, coff: int, block_size: int, out: Tensor
) -> None:
    _checks.tensor("seqused", seqused, torch.int32, ["B"])
    batch, device = seqused.shape[0], seqused.device
    _checks.tensor("block_table", block_table, _checks.INDEX_DTYPES, [batch, "blocks"], device)
    _checks.tensor("start_pos", start_pos, _checks.INDEX_DTYPES, [batch], device)
    _check_window(ratio, coff)
    _checks.integer("block_size", block_size, 1, _MAX)
    _checks.output("out", out, block_table.dtype, [batch, block_table.shape[1]], device)


_rows_op = operator(
    "state_rows(Tensor cu_seqlens, Tensor seqused, Tensor start_pos, Tensor request_slot, Tensor? req_to_token, "
    "Tensor? full_to_swa, int ratio, int coff, int ring, int swa_page, int dummy_row, Tensor(a!) out) -> ()",
    reference_rows,
    _check_rows,
)
_blocks_op = operator(
    "state_blocks(Tensor block_table, Tensor seqused, Tensor start_pos, int ratio, int coff, int block_size, "
    "Tensor(a!) out) -> ()",
    reference_blocks,
    _check_blocks,
)


def state_rows(
    cu_seqlens: Tensor,
    seqused: Tensor,
    start_pos: Tensor,
    request_slot: Tensor,
    ratio: int,
    coff: int,
    ring: int,
    max_verify_len: int,
    dummy_row: int,
    *,
    req_to_token: Tensor | None = None,
    full_to_swa: Tensor | None = None,
    swa_page: int | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """State row of every position a compressor reads or writes in a step: the explicit form.

    Column c of request i stands for ``position = s_i - coff·r + c``. It is valid iff ``u_i > 0``, ``position >= 0`` and
    ``c < coff·r + cu_seqlens[i + 1] - cu_seqlens[i]``; other columns hold `dummy_row`. The row of a position:

    - a ring per request (C128): ``request_slot·ring + position mod ring``;
    - a ring per page of the sliding-window cache (C4, when req_to_token, full_to_swa and swa_page are given):
      ``(w // swa_page)·ring + w mod ring`` with ``w = full_to_swa[req_to_token[request_slot, position]]``.

    `dummy_row` also stands for a negative or too large request_slot, a position past max_context, a token outside
    full_to_swa, a negative w, and a row that is no int32. A partial acceptance can lose state kept this way: bound
    the verify lengths with `max_safe_verify_len`.

    Args:
        cu_seqlens: int32 [B + 1]: rows each request owns, padding requests included.
        seqused: u, int32 [B]: rows of them that hold real tokens, 0 for padding and idle requests.
        start_pos: s, int32 or int64 [B]: tokens before this step; clamped to [0, 2^31 - 1].
        request_slot: int32 or int64 [B].
        ratio: r, tokens per compressed entry.
        coff: windows one entry reads (2 for C4, 1 for C128).
        ring: rows of a state ring.
        max_verify_len: N, the most rows a request owns.
        dummy_row: row that is written for columns without state.
        req_to_token: int32 [slots, max_context], token index of each position.
        full_to_swa: int32 or int64 [tokens], index in the sliding-window cache, negative if it left the window.
        swa_page: tokens per page of the sliding-window cache.
        out: int32 [B, coff·r + N] to write into.

    Returns:
        int32 [B, coff·r + N].

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Capture: the ints are fixed; every tensor may change on replay.

    Source: the explicit-row cache mode of DeepSeek-V4's compressor on Ascend.
    """
    _checks.tensor("seqused", seqused, torch.int32, ["B"])
    _check_window(ratio, coff)
    _checks.integer("max_verify_len", max_verify_len, 1, _checks.MAX_VERIFY_ROWS)
    if swa_page is not None:
        _checks.integer("swa_page", swa_page, 1, _MAX)
    shape = [seqused.shape[0], coff * ratio + max_verify_len]
    if out is None:
        out = torch.empty(shape, dtype=torch.int32, device=seqused.device)
    else:
        _checks.output("out", out, torch.int32, shape, seqused.device)
    numbers = (ratio, coff, ring, 0 if swa_page is None else swa_page, dummy_row)
    _rows_op(cu_seqlens, seqused, start_pos, request_slot, req_to_token, full_to_swa, *numbers, out)
    return out


def state_blocks(
    block_table: Tensor,
    seqused: Tensor,
    start_pos: Tensor,
    ratio: int,
    coff: int,
    block_size: int,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The block table of a compressor's state, reduced to the blocks a step touches: the block form.

    Block p covers positions [p·block_size, (p + 1)·block_size). Its id is kept iff u > 0 and it meets
    ``[max(0, floor(s / r)·r - (coff - 1)·r), s + u)``; any other id becomes 0, the reserved block, which no request
    owns.

    Args:
        block_table: int32 or int64 [B, blocks].
        seqused: u, int32 [B]: real tokens of this step, 0 for padding and idle requests.
        start_pos: s, int32 or int64 [B]: tokens before this step. s and u are clamped to [0, 2^31 - 1].
        ratio: r, tokens per compressed entry.
        coff: windows one entry reads (2 for C4, 1 for C128).
        block_size: positions per block.
        out: like block_table, to write into.

    Returns:
        [B, blocks] of block_table's dtype.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Capture: the ints are fixed; every tensor may change on replay.

    Source: the block-table cache mode of DeepSeek-V4's compressor on Ascend.
    """
    _checks.tensor("block_table", block_table, _checks.INDEX_DTYPES, ["B", "blocks"])
    if out is None:
        out = torch.empty_like(block_table, memory_format=torch.contiguous_format)
    _blocks_op(block_table, seqused, start_pos, ratio, coff, block_size, out)
    return out
