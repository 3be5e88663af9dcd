"""Specification of `pad_to_bucket`: padding requests that take up the rows a captured graph has over."""

from __future__ import annotations

import torch
from torch import Tensor


def pad_to_bucket(verify_lens: Tensor, rows: int, cap: int, padded: Tensor, seqused: Tensor) -> None:
    """The slack goes to the padding requests evenly, larger shares first; to the last request if there are none."""
    batch, slots = verify_lens.shape[0], padded.shape[0]
    real = verify_lens.long().clamp(min=0)
    slack = (rows - real.sum()).clamp(min=0)
    padding = slots - batch
    lens = torch.zeros(slots, dtype=torch.int64, device=verify_lens.device)
    used = torch.zeros_like(lens)
    lens[:batch] = real
    used[:batch] = real
    if padding > 0:
        share = torch.arange(padding, device=verify_lens.device) < slack % padding
        lens[batch:] = slack // padding + share
    elif batch > 0:
        lens[-1] += slack
    if cap >= 0:
        lens, used = lens.clamp(max=cap), used.clamp(max=cap)
    padded.copy_(lens)
    seqused.copy_(used)
