"""Specification of `gather_from_strided`: N rows per request into compact rows."""

from __future__ import annotations

import torch
from torch import Tensor

from ._bytes import fill_row, row_bytes


def _owners(cu_seqlens: Tensor, rows: int) -> Tensor:
    """First request i with cu[i + 1] > row, found by bisection; B if there is none.

    Spelt out, since it also settles what offsets that decrease mean.
    """
    batch = cu_seqlens.shape[0] - 1
    row = torch.arange(rows, device=cu_seqlens.device)
    low, high = torch.zeros_like(row), torch.full_like(row, batch)
    for _ in range(batch.bit_length()):
        middle = (low + high) // 2
        before = (low < high) & (cu_seqlens[(middle + 1).clamp(max=batch)] <= row)
        low, high = torch.where(before, middle + 1, low), torch.where((low < high) & ~before, middle, high)
    return low


def gather_from_strided(strided: Tensor, cu_seqlens: Tensor, fill: int, compact: Tensor) -> None:
    """compact[t] = strided[i * N + t - cu[i]] for the owner i of row t, if 0 <= t - cu[i] < N, else the fill."""
    batch, rows = cu_seqlens.shape[0] - 1, compact.shape[0]
    if compact.numel() == 0:
        return
    result = fill_row(fill, compact).expand(rows, -1)
    if strided.numel():
        width = strided.shape[0] // batch
        owner = _owners(cu_seqlens, rows)
        offset = torch.arange(rows, device=cu_seqlens.device) - cu_seqlens.long()[owner]
        valid = (owner < batch) & (offset >= 0) & (offset < width)
        source = torch.where(valid, owner * width + offset, 0)
        result = torch.where(valid[:, None], row_bytes(strided)[source], result)
    row_bytes(compact).copy_(result)
