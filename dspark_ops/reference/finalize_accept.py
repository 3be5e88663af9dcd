"""Specification of `finalize_accept`: cut a raw accepted length at the verify length and commit."""

from __future__ import annotations

import torch
from torch import Tensor

from .update_offset import update_offset

_MAX_LEN = (1 << 31) - 1


def target_at(target_tokens: Tensor, cu_seqlens: Tensor | None, row: Tensor) -> tuple[Tensor, Tensor]:
    """Target tokens at `row` [B, K] of each request, and whether there is such a row; 0 where there is none."""
    flat = target_tokens.reshape(-1)
    if cu_seqlens is None:
        batch = max(row.shape[0], 1)
        start = torch.arange(row.shape[0], device=row.device) * (flat.shape[0] // batch)
    else:
        start = cu_seqlens[:-1].long()
    index = start[:, None] + row
    inside = (index >= 0) & (index < flat.shape[0])
    padded = torch.cat([flat, flat.new_zeros(1)])
    return padded[torch.where(inside, index, flat.shape[0])], inside


def finalize_accept(
    raw_correct_len: Tensor,
    draft_tokens: Tensor,
    verify_lens: Tensor,
    prefix: Tensor | None,
    bonus_tokens: Tensor | None,
    target_tokens: Tensor | None,
    cu_seqlens: Tensor | None,
    confidence: Tensor | None,
    slots: Tensor | None,
    decay: float,
    eta: float,
    limit: float,
    offset: Tensor | None,
    correct_len: Tensor,
    trimmed: Tensor,
    bonus: Tensor,
    commit_len: Tensor,
    new_seq_len: Tensor | None,
    out_tokens: Tensor,
) -> None:
    """correct = min(raw, l - 1); the bonus follows it; a request with l = 0 commits nothing."""
    gamma = draft_tokens.shape[1]
    verify_len = verify_lens.long().clamp(0, gamma + 1)
    active = verify_len > 0
    raw = torch.where(active, raw_correct_len.long().clamp(0, gamma), 0)
    correct = torch.minimum(raw, (verify_len - 1).clamp(min=0))
    commit = torch.where(active, correct + 1, 0)
    if bonus_tokens is not None:
        following = bonus_tokens
    else:
        assert target_tokens is not None
        following = target_at(target_tokens, cu_seqlens, correct[:, None])[0][:, 0]
    following = torch.where(active, following, 0)
    tokens = torch.cat([draft_tokens, torch.zeros_like(draft_tokens[:, :1])], dim=1)
    tokens = tokens.scatter(1, correct[:, None], following[:, None])

    correct_len.copy_(correct)
    trimmed.copy_(raw - correct if cu_seqlens is None else torch.zeros_like(raw))
    bonus.copy_(following)
    commit_len.copy_(commit)
    out_tokens.copy_(torch.where(active[:, None], tokens, 0))
    if prefix is not None and new_seq_len is not None:
        new_seq_len.copy_((prefix.long().clamp(0, _MAX_LEN) + commit).clamp(max=_MAX_LEN))
    if offset is not None and confidence is not None:
        update_offset(confidence, correct_len, verify_lens, slots, decay, eta, limit, offset)
