"""Specification of `prefix_survival`: confidences or logits to survival (DESIGN 3.1)."""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST = 2.0**-100  # smaller products are +0, so that a flush-to-zero mode cannot change a result


def unit_interval(x: Tensor) -> Tensor:
    """NaN becomes 0, everything else is clamped to [0, 1]."""
    return torch.where(x > 0, x.clamp(max=1), 0.0)


def gather_rows(table: Tensor, rows: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
    """`table[rows]` with zeros for a row out of range, and the mask of rows in range. No `rows` means 0..batch-1."""
    if rows is None:
        return table, torch.ones(batch, dtype=torch.bool, device=table.device)
    inside = (rows >= 0) & (rows < table.shape[0])
    padded = torch.cat([table, table.new_zeros(1, *table.shape[1:])])
    return padded[torch.where(inside, rows.long(), table.shape[0])], inside


def prefix_survival(
    values: Tensor,
    is_logits: bool,
    scale: Tensor | None,
    bias: Tensor | None,
    offset: Tensor | None,
    slots: Tensor | None,
    offset_slots: Tensor | None,
    optimistic: bool,
    fresh: Tensor | None,
    generation: Tensor | None,
    expected: Tensor | None,
    survival: Tensor,
    calibrated: Tensor | None,
) -> None:
    """s[r, k] = c[r, 0] * ... * c[r, k] in float32, strictly left to right; rows that are not fresh are 1."""
    batch, gamma = survival.shape
    rows, inside = gather_rows(values, slots, batch)
    c = rows.float()
    if is_logits:
        if scale is not None:
            c = scale * c
        if bias is not None:
            c = c + bias
        if offset is not None:
            c = c + gather_rows(offset, offset_slots, batch)[0][:, None]
        # In float64, so that another back end's 1.5 ulp still lies within 2 ulp of this one.
        c = torch.sigmoid(c.double()).float()
        c = torch.where(c < SMALLEST, 0.0, c)
    c = torch.where(inside[:, None], unit_interval(c), 0.0)

    if optimistic:
        current = inside
        if fresh is not None:
            current = current & fresh
        if generation is not None and expected is not None:
            current = current & (gather_rows(generation, slots, batch)[0] == expected) & (expected >= 1)
        c = torch.where(current[:, None], c, 1.0)

    if calibrated is not None:
        calibrated.copy_(c)
    product = torch.ones_like(c[:, 0])
    for k in range(gamma):
        product = product * c[:, k]
        product = torch.where(product < SMALLEST, 0.0, product)
        survival[:, k] = product
