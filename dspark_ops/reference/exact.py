"""Exact integer arithmetic of the plan in int64 tensors: Q43 sums and ratio comparison (DESIGN 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor

Q_ONE = 1 << 43
MAX_STEP_NS = (1 << 31) - 1
_LOW = (1 << 32) - 1


def q43(survival: Tensor) -> Tensor:
    """floor(s * 2^43); exact for every float32 s in [2^-20, 1]."""
    return (survival.double() * Q_ONE).floor().long()


def multiply(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a * b as (hi, lo) with hi * 2^32 + lo, for 0 <= a < 2^62 and 0 <= b < 2^31."""
    low = (a & _LOW) * b
    return (a >> 32) * b + (low >> 32), low & _LOW


def greater(x: tuple[Tensor, Tensor], y: tuple[Tensor, Tensor]) -> Tensor:
    """x > y for two (hi, lo) numbers."""
    return (x[0] > y[0]) | ((x[0] == y[0]) & (x[1] > y[1]))


def ratio_greater(tau_a: Tensor, t_a: Tensor, tau_b: Tensor, t_b: Tensor) -> Tensor:
    """tau_a / t_a > tau_b / t_b."""
    return greater(multiply(tau_a, t_b), multiply(tau_b, t_a))


def at(values: Tensor, index: Tensor) -> Tensor:
    """values[index] for a scalar index tensor, without reading the index on the host."""
    return values.index_select(0, index.reshape(1)).reshape(())


def argmax_ratio(tau: Tensor, t: Tensor) -> Tensor:
    """Smallest index that maximises tau / t: a knock-out in which the right-hand one must be strictly better."""
    index = torch.arange(tau.numel(), device=tau.device)
    while index.numel() > 1:
        if index.numel() % 2:
            index = torch.cat([index, index[-1:]])
        left, right = index[0::2], index[1::2]
        index = torch.where(ratio_greater(tau[right], t[right], tau[left], t[left]), right, left)
    return index[0]


def gain_exceeds(tau_a: Tensor, t_a: Tensor, tau_b: Tensor, t_b: Tensor, ppm: int) -> Tensor:
    """(tau_a / t_a) * 10^6 > (tau_b / t_b) * (10^6 + ppm): products of up to 114 bits, in limbs of 32 bits."""
    a = _limbs(multiply(tau_a, t_b), 1_000_000)
    b = _limbs(multiply(tau_b, t_a), 1_000_000 + ppm)
    result = torch.zeros_like(tau_a, dtype=torch.bool)
    for x, y in zip(a, b, strict=True):  # least significant first: a later limb overrules
        result = torch.where(x == y, result, x > y)
    return result


def _limbs(product: tuple[Tensor, Tensor], factor: int) -> list[Tensor]:
    hi, lo = product
    first = lo * factor
    second = (hi & _LOW) * factor + (first >> 32)
    third = (hi >> 32) * factor + (second >> 32)
    return [first & _LOW, second & _LOW, third & _LOW, third >> 32]
