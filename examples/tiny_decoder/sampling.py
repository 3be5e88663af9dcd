"""Speculative sampling: accept a draft with chance min(1, p/q), else draw from what the draft left out."""

from __future__ import annotations

import torch
from torch import Tensor

import dspark_ops

from .draft import Draft


def accept_sampled(
    logits: Tensor, draft: Draft, lens: Tensor, prefix: Tensor, random: torch.Generator
) -> dspark_ops.Accepted:
    """Accept from target logits [B, N, vocab], no further than the verify lengths.

    The token after the last row that counts, l - 1, is drawn from the target itself: whether the draft there would have
    passed must not matter, or cutting would change what is drawn.
    """
    target = logits.softmax(-1)
    chosen = draft.tokens[..., None]
    p, q = target[:, :-1].gather(2, chosen)[..., 0], draft.chances.gather(2, chosen)[..., 0]
    passed = torch.rand(p.shape, generator=random, dtype=p.dtype) * q < p
    raw = passed.long().cumprod(1).sum(1).int()
    rest = (target[:, :-1] - draft.chances).clamp(min=0)
    rest = torch.where(rest.sum(-1, keepdim=True) > 0, rest, target[:, :-1])
    rest = torch.cat([rest, target[:, -1:]], 1)
    verified = torch.arange(target.shape[1]) < lens[:, None] - 1
    weights = torch.where(verified[..., None], rest, target)
    tokens = torch.multinomial(weights.flatten(0, 1), 1, generator=random).view(weights.shape[:2])
    return dspark_ops.finalize_accept(raw, draft.tokens, lens, prefix, target_tokens=tokens)
