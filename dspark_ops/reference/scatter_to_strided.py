"""Specification of `scatter_to_strided`: compact rows into N rows per request."""

from __future__ import annotations

import torch
from torch import Tensor

from ._bytes import fill_row, row_bytes


def scatter_to_strided(compact: Tensor, cu_seqlens: Tensor, width: int, fill: int, strided: Tensor) -> None:
    """strided[i * N + k] = compact[cu[i] + k] if k < cu[i + 1] - cu[i] and that row exists, else the fill."""
    rows = compact.shape[0]
    cu = cu_seqlens.long()
    offset = torch.arange(width, device=cu.device)
    source = (cu[:-1, None] + offset).reshape(-1)
    valid = (offset < (cu[1:] - cu[:-1])[:, None]).reshape(-1) & (source >= 0) & (source < rows)
    if strided.numel() == 0:
        return
    result = fill_row(fill, strided).expand(strided.shape[0], -1)
    if rows:
        result = torch.where(valid[:, None], row_bytes(compact)[source.clamp(0, rows - 1)], result)
    row_bytes(strided).copy_(result)
