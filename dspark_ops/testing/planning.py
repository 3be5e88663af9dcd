"""Cases of the planning operators: smooth, tied, extreme and broken confidences; staircase and odd cost rows."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from .generate import generator, index_dtype, ints, pick_batch, poison

DTYPES = (torch.float32, torch.float32, torch.bfloat16, torch.float16)
KINDS = ("uniform", "high", "ties", "grid", "ones", "zeros", "tiny", "denormal", "broken", "equal", "near")


def confidences(rng: Random, rows: int, gamma: int, kind: str | None = None) -> Tensor:
    """float32 [rows, gamma] of one kind of trouble."""
    g = torch.Generator().manual_seed(rng.getrandbits(60))
    c = torch.rand(rows, gamma, generator=g)
    kind = kind or rng.choice(KINDS)
    if kind == "high":
        c = 1 - c**4
    elif kind == "ties":
        c = (c * 4).round() / 4
    elif kind == "grid":
        c = 1 - 2.0 ** -(c * 6).floor()
    elif kind == "ones":
        c = torch.ones_like(c)
    elif kind == "zeros":
        c = torch.where(c < 0.7, 0.0, c)
    elif kind == "tiny":
        c = c * 1e-3
    elif kind == "denormal":
        c = torch.where(c < 0.5, c * 1e-38, c)
    elif kind == "broken":
        bad = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.5, 1.5, -0.0])
        c = torch.where(c < 0.3, bad[(c * 1000).long() % bad.numel()], c)
    elif kind == "near":  # a few units in the last place apart
        c = (torch.full_like(c, 0.75).view(torch.int32) + (c * 200).int()).view(torch.float32)
        c[:, 1:] = 1.0
    elif kind == "equal":
        c = torch.full_like(c, rng.choice([0.5, 0.9, 1.0]))
    return c


def survivals(rng: Random, batch: int, gamma: int) -> Tensor:
    """Mostly true survival, sometimes what no prefix_survival returns."""
    c = confidences(rng, batch, gamma)
    return c if rng.random() < 0.15 else c.nan_to_num(0.0).clamp(0, 1).cumprod(1)


def cost_row(rng: Random, rows: int) -> Tensor:
    """int32 [rows + 1]: linear, staircase, flat, noisy, falling or extreme step times."""
    m = torch.arange(rows + 1, dtype=torch.float64)
    kind = rng.choice(["linear", "staircase", "flat", "noisy", "falling", "extreme", "proportional"])
    scale = rng.choice([1e2, 1e5, 1e7])
    if kind == "linear":
        t = 20 + m
    elif kind == "staircase":
        t = 20 + (m / rng.choice([3, 8, 32])).ceil() * 8
    elif kind == "flat":
        t = torch.full_like(m, 7)
    elif kind == "noisy":
        t = 20 + m + torch.rand(rows + 1, generator=torch.Generator().manual_seed(rng.getrandbits(60))) * 9
    elif kind == "falling":
        t = 1 + (rows - m)
    elif kind == "proportional":
        t = m
    else:
        return ints(rng, rows + 1, -(1 << 31), (1 << 31) - 1)
    return (t * scale / 10).clamp(max=(1 << 31) - 1).to(torch.int32)


def _scalar(rng: Random, values: list[int]) -> tuple[int, Tensor | None]:
    """The same kind of number as an int or as an int64 scalar tensor."""
    value = rng.choice(values)
    return (value, None) if rng.random() < 0.5 else (0, torch.tensor([value]))


def _rules(rng: Random, batch: int, gamma: int) -> tuple[Tensor | None, int, int, float]:
    width = gamma + 1
    caps = ints(rng, batch, *rng.choice([(0, 1), (0, width), (-3, width + 3)])) if rng.random() < 0.5 else None
    high = rng.choice([0, 0, rng.randint(1, width)])
    low = rng.choice([1, 1, 0, rng.randint(0, high or width)])
    return caps, low, high, rng.choice([1e-6, 1e-6, 2.0**-20, 0.1, 0.5, 1.0])


def _cost(rng: Random, rows: int, max_rows: int) -> tuple[Tensor, int, Tensor | None]:
    """A cost row that is as short as the checks allow (M0 may then lie past its end), or longer."""
    needed = rows if max_rows < 0 else min(rows, max_rows)
    step_ns = cost_row(rng, rows)[: needed + rng.choice([1, 1, rows + 1])]
    return step_ns.clone(), *_scalar(rng, [0, 0, 1000, 5_000_000, -50, 1 << 40, -(1 << 40)])


def _tiers(rng: Random, rows: int) -> tuple[Tensor | None, bool]:
    if rng.random() < 0.4:
        return None, False
    picked = sorted({rng.randint(0, rows + 5) for _ in range(rng.randint(1, 9))})
    return torch.tensor(picked, dtype=torch.int32), rng.random() < 0.6


def _search(rng: Random) -> tuple[int, int]:
    search = rng.choice([0, 0, 1])
    return search, 0 if search else rng.choice([0, 0, 1, 30_000, 1_000_000])


def _max_rows(rng: Random, rows: int) -> int:
    return rng.choice([-1, -1, 0, rng.randint(0, rows + 4)])


def _shape(rng: Random) -> tuple[int, int]:
    batch = pick_batch(rng)
    return batch, rng.choice([1, 2, 5, 7, 7, 15])


def _inputs(rng: Random, rows: int, gamma: int, is_logits: bool) -> Tensor:
    """Confidences or logits of any dtype."""
    c = confidences(rng, rows, gamma)
    values = (c.logit() * rng.choice([0.5, 1.0, 9.0])) if is_logits else c
    return values.to(rng.choice(DTYPES))


def _normal(rng: Random, size: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(rng.getrandbits(60)))


def _calibration(
    rng: Random, gamma: int, offset_rows: int, is_logits: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """scale, bias, offset; None unless there are logits to calibrate."""
    sizes = (gamma, gamma, offset_rows)
    scale, bias, offset = (_normal(rng, n) if is_logits and rng.random() < 0.6 else None for n in sizes)
    return scale, bias, offset


@generator
def prefix_survival(rng: Random) -> tuple[Any, ...]:
    batch, gamma = _shape(rng)
    slot_major, is_logits = rng.random() < 0.5, rng.random() < 0.4
    rows = rng.randint(1, 2 * batch + 3) if slot_major else batch
    slots = ints(rng, batch, -2, rows + 1, index_dtype(rng)) if slot_major else None
    offset_rows = rng.randint(1, batch + 3) if slot_major else batch
    calibration = _calibration(rng, gamma, offset_rows, is_logits)
    offset_slots = ints(rng, batch, -2, offset_rows + 1, index_dtype(rng)) if slot_major else None
    optimistic = rng.random() < 0.5
    fresh = generation = expected = None
    if optimistic and rng.random() < 0.7:
        if rng.random() < 0.5:
            fresh = ints(rng, batch, 0, 1, torch.bool)
        else:
            generation = ints(rng, rows, 0, 2, torch.int64)
            expected = ints(rng, batch, 0, 2, torch.int64)
    return (
        _inputs(rng, rows, gamma, is_logits), is_logits, *calibration, slots,
        offset_slots if calibration[2] is not None else None, optimistic, fresh, generation, expected,
        poison([batch, gamma], torch.float32), poison([batch, gamma], torch.float32) if rng.random() < 0.5 else None,
    )  # fmt: skip


@generator
def plan_budget(rng: Random) -> tuple[Any, ...]:
    batch, gamma = _shape(rng)
    rows = batch * (gamma + 1)
    tiers, fill = _tiers(rng, rows)
    search, ppm = _search(rng)
    max_rows = _max_rows(rng, rows)
    with_tau = tiers is not None and rng.random() < 0.7
    return (
        survivals(rng, batch, gamma), *_cost(rng, rows, max_rows), *_rules(rng, batch, gamma), search, max_rows, ppm,
        tiers, fill, poison([5], torch.int64),
        poison([2, tiers.numel()], torch.int64) if with_tau and tiers is not None else None,
    )  # fmt: skip


@generator
def schedule_verify_lens(rng: Random) -> tuple[Any, ...]:
    batch, gamma = _shape(rng)
    rows = batch * (gamma + 1)
    budget, budget_tensor = _scalar(rng, [0, 1, rng.randint(0, rows + 2), rng.randint(0, rows + 2), 1 << 40])
    if budget_tensor is not None and rng.random() < 0.1:
        budget_tensor = torch.tensor([rng.choice([-1, -(1 << 63), (1 << 63) - 1])])
    max_rows = _max_rows(rng, rows)
    cost = _cost(rng, rows, max_rows) if rng.random() < 0.6 else (None, 0, None)
    return (
        survivals(rng, batch, gamma), budget, budget_tensor, *cost, *_rules(rng, batch, gamma), max_rows,
        *_tiers(rng, rows), poison([batch], torch.int32), poison([5], torch.int64),
    )  # fmt: skip


@generator
def allocate_verify_lens(rng: Random) -> tuple[Any, ...]:
    batch, gamma = _shape(rng)
    rows = batch * (gamma + 1)
    value_rows, slots = batch, None
    if rng.random() < 0.5:
        value_rows = rng.randint(1, 2 * batch + 3)
        slots = ints(rng, batch, -2, value_rows + 1, index_dtype(rng))
    is_logits = rng.random() < 0.3
    values = _inputs(rng, value_rows, gamma, is_logits)
    calibration = _calibration(rng, gamma, batch if slots is None else rng.randint(1, batch + 3), is_logits)
    history = history_slots = fresh = generation = expected = None
    budget, budget_tensor = -1, None
    if rng.random() < 0.25:
        budget, budget_tensor = _scalar(rng, [0, rng.randint(0, rows + 2)])
    elif rng.random() < 0.6:
        history_rows = batch
        if rng.random() < 0.5:
            history_rows = rng.randint(1, 2 * batch + 3)
            history_slots = ints(rng, batch, -2, history_rows + 1, index_dtype(rng))
        history = _inputs(rng, history_rows, gamma, is_logits)
        if rng.random() < 0.5:
            fresh = ints(rng, batch, 0, 1, torch.bool)
        else:
            generation, expected = ints(rng, history_rows, 0, 2, torch.int64), ints(rng, batch, 0, 2, torch.int64)
    search, ppm = _search(rng)
    max_rows = _max_rows(rng, rows)
    return (
        values, is_logits, *calibration, slots, history, history_slots, fresh, generation, expected, budget,
        budget_tensor, *_cost(rng, rows, max_rows), *_rules(rng, batch, gamma), search, max_rows, ppm,
        *_tiers(rng, rows), poison([batch], torch.int32), poison([batch + 1], torch.int32),
        poison([batch, gamma], torch.float32), poison([5], torch.int64),
        poison([batch, gamma], torch.float32) if rng.random() < 0.5 else None,
    )  # fmt: skip
