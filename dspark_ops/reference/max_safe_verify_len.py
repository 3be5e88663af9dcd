"""Specification of `max_safe_verify_len`: the longest length after which any acceptance keeps compressor state."""

from __future__ import annotations

import torch
from torch import Tensor


def max_safe_verify_len(
    start_pos: Tensor, ratio: int, coff: int, ring: int, max_verify_len: int, safe_lens: Tensor
) -> None:
    """l is safe iff th(l) = (floor((s + l) / ratio) - (coff - 1)) * ratio <= max(s, th(1)), and it fits the ring."""
    s = start_pos.long().clamp(0, (1 << 31) - 1)
    threshold_of_one = (((s + 1) // ratio) - (coff - 1)) * ratio
    kept_from = torch.maximum(s, threshold_of_one)
    # th is a staircase in l, so the largest safe l is the last one below the step that passes kept_from.
    longest = (kept_from // ratio + coff) * ratio - 1 - s
    if ring > 0:
        longest = longest.clamp(max=ring - coff * ratio + 1)
    safe_lens.copy_(longest.clamp(1, max_verify_len))
