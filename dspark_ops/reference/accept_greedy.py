"""Specification of `accept_greedy`: accept drafts while they equal the target's own choice."""

from __future__ import annotations

import torch
from torch import Tensor

from .finalize_accept import finalize_accept, target_at


def accept_greedy(
    draft_tokens: Tensor,
    target_tokens: Tensor,
    verify_lens: Tensor,
    prefix: Tensor | None,
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
    """raw = length of the prefix where draft k equals the target token at row k; then as `finalize_accept`."""
    batch, gamma = draft_tokens.shape
    k = torch.arange(gamma, device=draft_tokens.device).expand(batch, gamma)
    token, inside = target_at(target_tokens, cu_seqlens, k)
    equal = inside & (token == draft_tokens)
    if cu_seqlens is not None:
        equal &= k < verify_lens.long()[:, None] - 1  # later rows were never computed
    raw = equal.int().cumprod(1).sum(1)
    finalize_accept(
        raw,
        draft_tokens,
        verify_lens,
        prefix,
        None,
        target_tokens,
        cu_seqlens,
        confidence,
        slots,
        decay,
        eta,
        limit,
        offset,
        correct_len,
        trimmed,
        bonus,
        commit_len,
        new_seq_len,
        out_tokens,
    )
