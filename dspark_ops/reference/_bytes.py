"""Rows as bytes: what `scatter_to_strided` and `gather_from_strided` move, whatever the dtype."""

from __future__ import annotations

import torch
from torch import Tensor


def row_bytes(t: Tensor) -> Tensor:
    """[rows, ...] as uint8 [rows, bytes per row]; shares the memory of a contiguous tensor."""
    t = t.contiguous()
    size = t.element_size()
    for n in t.shape[1:]:
        size *= n
    if t.numel() == 0:
        return torch.empty(t.shape[0], size, dtype=torch.uint8, device=t.device)
    # Not reshape: a tensor with one row may have any stride there and still be contiguous.
    return t.as_strided([t.numel()], [1]).view(torch.uint8).view(t.shape[0], size)


def fill_row(fill: int, t: Tensor) -> Tensor:
    """One row of `row_bytes(t)` in which every element has the bit pattern `fill`."""
    element = t.element_size()
    shift = (8 * torch.arange(element, device=t.device)).clamp(max=63)
    pattern = ((torch.full_like(shift, fill) >> shift) & 255).to(torch.uint8)
    return pattern.repeat(row_bytes(t).shape[1] // element)
