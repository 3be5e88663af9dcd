"""The operator calls whose Triton kernels `aot.py` compiles: the forms and sizes that a deployment would meet.

An operator that is not named here is compiled for one random case of the tests, batch and all. To add one, write
`def <stem>() -> Iterator[Call]` and yield a label and the arguments of the dispatcher schema.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import aot_rows
import torch

import dspark_ops  # noqa: F401  (defines the operators)
from dspark_ops import _registry
from dspark_ops.testing import case

Call = aot_rows.Call
# The last but one fits one program only if the budget is given, the last never.
SIZES = ((8, 7), (64, 31), (256, 7), (128, 15), (512, 7), (1024, 7), (2048, 7))
EPS = 1e-6


def _int32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def _cost(batch: int, gamma: int) -> tuple[Any, ...]:
    return torch.ones(batch * (gamma + 1) + 1, dtype=torch.int32), 0, torch.tensor(0)


def _outputs(batch: int, gamma: int) -> tuple[Any, ...]:
    return (
        torch.empty(batch, dtype=torch.int32), torch.empty(batch + 1, dtype=torch.int32), torch.empty(batch, gamma),
        torch.empty(5, dtype=torch.int64),
    )  # fmt: skip


def allocate_verify_lens() -> Iterator[Call]:
    for batch, gamma in SIZES:
        slots = torch.arange(batch)
        cost, outputs = _cost(batch, gamma), _outputs(batch, gamma)
        c, caps, tiers = torch.rand(batch, gamma), torch.ones(batch, dtype=torch.int32), _int32(8, 16)
        k, per_slot = torch.ones(gamma), torch.ones(batch)
        none3, none5 = (None,) * 3, (None,) * 5
        rules, plain = (caps, 1, 0, EPS), (None, 1, 0, EPS)
        size = f"{batch}x{gamma}"
        for search, name in ((0, "global"), (1, "first_drop")):
            yield (
                f"{name} {size}",
                (c, False, *none3, None, *none5, -1, None, *cost, *plain, search, -1, 0, None, False, *outputs, None),
            )
        yield (
            f"history, logits, slots, caps, tiers {size}",
            (c.bfloat16(), True, k, k, per_slot, slots, c.bfloat16(), slots, None, slots, slots, -1, None, *cost,
             *rules, 0, 64, 100, tiers, True, *outputs, torch.empty(batch, gamma)),
        )  # fmt: skip
        yield (
            f"given budget, caps, tiers {size}",
            (c, False, *none3, slots, *none5, 0, torch.tensor(3), *cost, *rules, 0, -1, 0, tiers, True, *outputs, None),
        )


def plan_budget() -> Iterator[Call]:
    for batch, gamma in SIZES:
        survival, stats = torch.rand(batch, gamma), torch.empty(5, dtype=torch.int64)
        shared, caps = (survival, *_cost(batch, gamma)), torch.ones(batch, dtype=torch.int32)
        yield (
            f"global, tiers, tier_tau {batch}x{gamma}",
            (*shared, None, 1, 0, EPS, 0, -1, 0, _int32(8, 16), False, stats, torch.empty(2, 2, dtype=torch.int64)),
        )
        yield f"global {batch}x{gamma}", (*shared, None, 1, 0, EPS, 0, -1, 0, None, False, stats, None)
        yield (
            f"first_drop, caps {batch}x{gamma}",
            (*shared, caps, 1, 0, EPS, 1, -1, 0, None, False, stats, None),
        )


def schedule_verify_lens() -> Iterator[Call]:
    for batch, gamma in SIZES:
        lens, _, _, stats = _outputs(batch, gamma)
        survival, tiers = torch.rand(batch, gamma), _int32(8, 16)
        yield (
            f"given budget, tiers {batch}x{gamma}",
            (survival, 0, torch.tensor(3), *_cost(batch, gamma), None, 1, 0, EPS, -1, tiers, True, lens, stats),
        )


def prefix_survival() -> Iterator[Call]:
    for gamma in (7, 15, 100):
        c, k, per_slot, slots = torch.rand(64, gamma), torch.ones(gamma), torch.ones(64), torch.arange(64)
        out = torch.empty(64, gamma)
        yield f"confidence 64x{gamma}", (c, False, *(None,) * 5, False, None, None, None, out, None)
        yield (
            f"logits, slots, generation 64x{gamma}",
            (c.bfloat16(), True, k, k, per_slot, slots, slots, True, None, slots, slots, out, out.clone()),
        )


_NAMED: dict[str, Callable[[], Iterator[Call]]] = aot_rows.CALLS | {
    f.__name__: f for f in (allocate_verify_lens, plan_budget, schedule_verify_lens, prefix_survival)
}


def calls(stem: str) -> Iterator[Call]:
    """The calls to compile for one operator."""
    if stem in _NAMED:
        yield from _NAMED[stem]()
        return
    cases = (case(stem, seed) for seed in range(1000))
    args = next(a for a in cases if all(t.numel() for t in a if isinstance(t, torch.Tensor)))
    yield "random case", args


def stems() -> list[str]:
    """The operators, and `verify_metadata`, which launches two of them as one."""
    return [*_registry.stems(), "verify_metadata"]


def launcher(stem: str) -> Callable[..., Any]:
    """The function of the Triton back end of that name."""
    file = _registry.file_of(stem) if stem in _registry.stems() else stem
    return getattr(importlib.import_module(f"dspark_ops.triton.{file}"), stem)
