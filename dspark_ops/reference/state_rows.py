"""Specification of `state_rows` and `state_blocks`: where a compressor finds and keeps its state."""

from __future__ import annotations

import torch
from torch import Tensor

_MAX = (1 << 31) - 1


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
    """Column c holds the row of position s - coff * r + c, for c < coff * r + owned rows."""
    window = coff * ratio
    column = torch.arange(out.shape[1], device=out.device)
    start = start_pos.long().clamp(0, _MAX)[:, None]
    owned = (cu_seqlens[1:].long() - cu_seqlens[:-1].long())[:, None]
    position = start - window + column
    valid = (seqused > 0)[:, None] & (position >= 0) & (column < window + owned)
    slot = request_slot.long()[:, None]
    group, phase = slot.expand_as(position), position
    if req_to_token is not None and full_to_swa is not None:
        slots, context, tokens = *req_to_token.shape, full_to_swa.shape[0]
        valid = valid & (slot >= 0) & (slot < slots) & (position < context)
        if req_to_token.numel() == 0 or tokens == 0:
            out.fill_(dummy_row)
            return
        token = req_to_token[slot.clamp(0, slots - 1), position.clamp(0, context - 1)].long()
        valid = valid & (token >= 0) & (token < tokens)
        phase = full_to_swa[token.clamp(0, tokens - 1)].long()
        group = torch.div(phase, swa_page, rounding_mode="floor")
    valid = valid & (group >= 0) & (group <= _MAX)
    row = torch.where(valid, group, 0) * ring + torch.where(valid, phase, 0) % ring
    out.copy_(torch.where(valid & (row <= _MAX), row, dummy_row))


def state_blocks(
    block_table: Tensor, seqused: Tensor, start_pos: Tensor, ratio: int, coff: int, block_size: int, out: Tensor
) -> None:
    """Keep block p iff [p * size, (p + 1) * size) meets [max(0, (floor(s / r) - (coff - 1)) * r), s + u) and u > 0."""
    start = start_pos.long().clamp(0, _MAX)[:, None]
    used = seqused.long().clamp(0, _MAX)[:, None]
    begin = ((start // ratio - (coff - 1)) * ratio).clamp(min=0)
    block = torch.arange(block_table.shape[1], device=out.device) * block_size
    keep = (used > 0) & (block < start + used) & (block + block_size > begin)
    out.copy_(torch.where(keep, block_table, 0))
