"""Specification of `ragged_layout`: which request and offset each row of a compact verify batch belongs to."""

from __future__ import annotations

import torch
from torch import Tensor

_MAX = (1 << 31) - 1


def ragged_layout(
    verify_lens: Tensor,
    prefix: Tensor | None,
    root_tokens: Tensor | None,
    draft_tokens: Tensor | None,
    cu_seqlens: Tensor,
    row_request: Tensor,
    row_offset: Tensor,
    position: Tensor | None,
    verify_ids: Tensor | None,
    cache_seqlens: Tensor | None,
    cu_seqlens_k: Tensor | None,
) -> None:
    """Row t belongs to the request i with cu[i] <= t < cu[i + 1], at offset t - cu[i]; every other row is padding."""
    batch, rows, device = verify_lens.shape[0], row_request.shape[0], verify_lens.device
    lens = verify_lens.long().clamp(min=0)
    cu = torch.zeros(batch + 1, dtype=torch.int64, device=device)
    cu[1:] = lens.cumsum(0).clamp(max=_MAX)
    cu_seqlens.copy_(cu)

    row = torch.arange(rows, device=device)
    owner = torch.searchsorted(cu[1:].contiguous(), row, right=True)
    used = owner < batch
    request = owner.clamp(max=max(batch - 1, 0))
    offset = torch.where(used, row - cu[owner], 0)
    row_request.copy_(torch.where(used, owner, -1))
    row_offset.copy_(offset)
    if position is not None and prefix is not None:
        position.copy_(torch.where(used, prefix.long()[request] + offset, 0) if batch else torch.zeros_like(row))
    if verify_ids is not None and root_tokens is not None and draft_tokens is not None:
        tokens = torch.cat([root_tokens[:, None], draft_tokens, torch.zeros_like(root_tokens)[:, None]], 1)
        ids = tokens[request, offset.clamp(max=tokens.shape[1] - 1)] if batch else torch.zeros_like(row)
        verify_ids.copy_(torch.where(used, ids, 0))
    if prefix is None:
        return
    # Clamped first so that no prefix overflows the sum; the clamped result is the exact one.
    cached = (prefix.long().clamp(-(1 << 32), 1 << 32) + lens).clamp(0, _MAX)
    if cache_seqlens is not None:
        cache_seqlens.copy_(cached)
    if cu_seqlens_k is not None:
        cu_seqlens_k[:1] = 0
        cu_seqlens_k[1:] = cached.cumsum(0).clamp(max=_MAX)
