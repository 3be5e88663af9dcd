"""Cases of the acceptance operators."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from .generate import generator, index_dtype, ints, pick_batch, poison

_ODD_FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.0, 4.0, -4.0, 1e-40, -1.5, 2.5]


def _floats(rng: Random, shape: list[int], low: float, high: float) -> Tensor:
    """Random float32, sometimes with odd values in between."""
    odd = rng.choice([0.0, 0.0, 0.3])
    n = int(torch.Size(shape).numel())
    values = [rng.choice(_ODD_FLOATS) if rng.random() < odd else rng.uniform(low, high) for _ in range(n)]
    return torch.tensor(values, dtype=torch.float32).reshape(shape)


def _verify_lens(rng: Random, batch: int, width: int) -> Tensor:
    low, high = rng.choice([(1, width), (0, width), (0, 1), (-3, width + 3), (-(1 << 31), (1 << 31) - 1)])
    return ints(rng, batch, low, high)


def _slots(rng: Random, batch: int) -> tuple[Tensor | None, int]:
    """Distinct slots with some out of range, and how many slots there are; or None."""
    if rng.random() < 0.3:
        return None, batch
    num_slots = rng.choice([0, batch, batch + 3, 2 * batch + 5])
    dtype = index_dtype(rng)
    outside = [-1, num_slots, torch.iinfo(dtype).max, torch.iinfo(dtype).min]
    pool = rng.sample(range(num_slots), num_slots) + [rng.choice(outside) for _ in range(batch)]
    bad = rng.choice([0.0, 0.3])
    slots = [pool[i] if rng.random() >= bad else rng.choice(outside) for i in range(batch)]
    return torch.tensor(slots, dtype=dtype), num_slots


def _learning(rng: Random, batch: int, gamma: int) -> tuple[Any, ...]:
    """confidence, slots, decay, eta, limit, offset."""
    slots, num_slots = _slots(rng, batch)
    rates = rng.choice([(1.0, 0.1, 4.0), (0.9, 0.3, 0.5), (0.0, 1.0, 0.0), (0.7, 1e6, 1e6)])
    return _floats(rng, [batch, gamma], 0.0, 1.0), slots, *rates, _floats(rng, [num_slots], -5.0, 5.0)


def _drafts_and_target(rng: Random, batch: int, gamma: int) -> tuple[Tensor, Tensor]:
    """Token ids of a small vocabulary (0 included), so that prefixes of every length match; sometimes huge ids."""
    low, high = rng.choice([(0, 1), (0, 3), (-(1 << 63), (1 << 63) - 1)])
    target = ints(rng, batch * (gamma + 1), low, high, torch.int64).reshape(batch, gamma + 1)
    draft = target[:, :gamma].clone()
    wrong = rng.choice([0.0, 0.1, 0.5])
    for i in range(batch * gamma):
        if rng.random() < wrong:
            draft.view(-1)[i] = rng.randint(low, high)
    return draft, target


def _target_form(rng: Random, target: Tensor, verify_lens: Tensor) -> tuple[Tensor, Tensor | None]:
    """The target as [B, N], as [B·N], or compact with cu_seqlens, which may be wrong."""
    batch, width = target.shape
    form = rng.choice(["strided", "flat", "compact", "compact", "wrong"])
    if form == "strided":
        return target, None
    if form == "flat":
        return target.reshape(-1), None
    if form == "wrong":
        rows = rng.choice([0, 1, batch * width])
        low, high = rng.choice([(-3, rows + 3), (-(1 << 31), (1 << 31) - 1)])
        return target.reshape(-1)[:rows].clone(), ints(rng, batch + 1, low, high)
    lens = verify_lens.clamp(0, width)
    cu = torch.cat([torch.zeros(1, dtype=torch.int32), lens.cumsum(0, dtype=torch.int32)])
    padding = torch.zeros(rng.choice([0, 5]), dtype=torch.int64)
    return torch.cat([*(target[r, : int(n)] for r, n in enumerate(lens)), padding]), cu


def _prefix(rng: Random, batch: int) -> Tensor | None:
    dtype = index_dtype(rng)
    low, high = rng.choice([(0, 5000), (-9, 9), ((1 << 31) - 5, (1 << 31) - 1)])
    if dtype is torch.int64 and rng.random() < 0.2:
        low, high = -(1 << 63), (1 << 63) - 1
    return None if rng.random() < 0.2 else ints(rng, batch, low, high, dtype)


def _tail(rng: Random, batch: int, gamma: int, prefix: Tensor | None) -> tuple[Any, ...]:
    """The arguments from confidence on: what is learnt, then the outputs."""
    learning = _learning(rng, batch, gamma) if rng.random() < 0.6 else (None, None, 1.0, 0.1, 4.0, None)
    return (
        *learning,
        poison([batch], torch.int32),
        poison([batch], torch.int32),
        poison([batch], torch.int64),
        poison([batch], torch.int32),
        None if prefix is None else poison([batch], prefix.dtype),
        poison([batch, gamma + 1], torch.int64),
    )


@generator
def accept_greedy(rng: Random) -> tuple[Any, ...]:
    batch, gamma = pick_batch(rng), rng.choice([1, 2, 3, 7, 15])
    draft, target = _drafts_and_target(rng, batch, gamma)
    verify_lens, prefix = _verify_lens(rng, batch, gamma + 1), _prefix(rng, batch)
    target_tokens, cu_seqlens = _target_form(rng, target, verify_lens)
    return draft, target_tokens, verify_lens, prefix, cu_seqlens, *_tail(rng, batch, gamma, prefix)


@generator
def finalize_accept(rng: Random) -> tuple[Any, ...]:
    batch, gamma = pick_batch(rng), rng.choice([1, 2, 3, 7, 15])
    draft, target = _drafts_and_target(rng, batch, gamma)
    verify_lens, prefix = _verify_lens(rng, batch, gamma + 1), _prefix(rng, batch)
    bonus, target_tokens, cu_seqlens = None, None, None
    if rng.random() < 0.5:
        bonus = ints(rng, batch, 0, 1 << 40, torch.int64)
    else:
        target_tokens, cu_seqlens = _target_form(rng, target, verify_lens)
    low, high = rng.choice([(0, gamma), (-2, gamma + 2), (-(1 << 31), (1 << 31) - 1)])
    source = (bonus, target_tokens, cu_seqlens)
    return ints(rng, batch, low, high), draft, verify_lens, prefix, *source, *_tail(rng, batch, gamma, prefix)


@generator
def update_offset(rng: Random) -> tuple[Any, ...]:
    batch, gamma = pick_batch(rng), rng.choice([1, 2, 3, 7, 15])
    confidence, *rest = _learning(rng, batch, gamma)
    low, high = rng.choice([(0, gamma), (-2, gamma + 2), (-(1 << 31), (1 << 31) - 1)])
    return confidence, ints(rng, batch, low, high), _verify_lens(rng, batch, gamma + 1), *rest
