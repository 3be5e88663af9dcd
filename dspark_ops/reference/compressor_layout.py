"""Specification of `compressor_layout`: the compressed entries that a verify step completes, per ratio."""

from __future__ import annotations

import torch
from torch import Tensor

_MAX = (1 << 31) - 1


def compressor_layout(
    cu_seqlens: Tensor,
    seqused: Tensor,
    start_pos: Tensor,
    rows: int,
    clamp_seqused_kv: bool,
    ratio: int,
    page_table: Tensor,
    page_size: int,
    pad_slot: int,
    ratio2: int,
    page_table2: Tensor | None,
    page_size2: int,
    pad_slot2: int,
    start_pos_out: Tensor,
    seqused_out: Tensor,
    seqused_kv: Tensor,
    offsets: Tensor,
    rope_position: Tensor,
    query_row: Tensor,
    slot: Tensor,
    offsets2: Tensor | None,
    rope_position2: Tensor | None,
    query_row2: Tensor | None,
    slot2: Tensor | None,
) -> None:
    """Lengths per request, then one table of entries per ratio."""
    start = start_pos.long().clamp(0, _MAX)
    used = seqused.long().clamp(0, _MAX)
    start_pos_out.copy_(start)
    seqused_out.copy_(used)
    seqused_kv.copy_((start + used).clamp(1 if clamp_seqused_kv else 0, _MAX))

    cu = cu_seqlens.long()
    _table(cu, start, used, rows, ratio, page_table, page_size, pad_slot, offsets, rope_position, query_row, slot)
    if page_table2 is not None:
        second = (ratio2, page_table2, page_size2, pad_slot2, offsets2, rope_position2, query_row2, slot2)
        _table(cu, start, used, rows, *second)  # type: ignore[arg-type]  # given together with page_table2


def _table(
    cu: Tensor,
    start: Tensor,
    used: Tensor,
    rows: int,
    ratio: int,
    page_table: Tensor,
    page_size: int,
    pad_slot: int,
    offsets: Tensor,
    rope_position: Tensor,
    query_row: Tensor,
    slot: Tensor,
) -> None:
    """Entry j of request i is number floor(s / r) + j; it completes with the token at (entry + 1) * r - 1."""
    batch, capacity, pages = start.shape[0], query_row.shape[0], page_table.shape[1]
    first = start // ratio
    ends = ((start + used) // ratio - first).cumsum(0).clamp(max=_MAX)
    offsets[:1] = 0
    offsets[1:] = ends
    if batch == 0:
        rope_position.zero_()
        query_row.fill_(-1)
        slot.fill_(pad_slot)
        return

    place = torch.arange(capacity, device=start.device)
    owner = torch.searchsorted(ends, place, right=True)
    request = owner.clamp(max=batch - 1)
    entry = first[request] + place - offsets.long()[request]
    row = cu[request] + (entry + 1) * ratio - 1 - start[request]
    valid = (owner < batch) & (row >= 0) & (row < rows)
    rope_position.copy_(torch.where(valid, entry * ratio, 0))
    query_row.copy_(torch.where(valid, row, -1))

    page, within = entry // page_size, entry % page_size
    inside = valid & (page < pages)
    table = page_table.long() if pages else page_table.new_full([batch, 1], -1, dtype=torch.int64)
    page_id = torch.where(inside, table[request, torch.where(inside, page, 0)], -1)
    # A slot that the output's type cannot hold is a page outside the cache.
    fits = (page_id >= 0) & (page_id <= (torch.iinfo(slot.dtype).max - within) // page_size)
    slot.copy_(torch.where(fits, torch.where(fits, page_id, 0) * page_size + within, pad_slot))
