"""What the planner's tests share: costs, graphs, and one step of a planner."""

from __future__ import annotations

import torch

import dspark_ops
from dspark_ops import Decision, Plan, Planner

GAMMA = 3


def table(*steps: tuple[int, float]) -> dspark_ops.FloorTable:
    """A floor table of (rows, milliseconds)."""
    return dspark_ops.FloorTable(
        sample_batch_tokens=[rows for rows, _ in steps], sample_steps_per_sec=[1e3 / ms for _, ms in steps],
        max_batch_tokens=max(rows for rows, _ in steps),
    )  # fmt: skip


# A step of 8 rows or fewer takes 1 ms, then 0.05 ms a row: of 8 requests, a draft is worth its row from 0.4 on.
STEEP = table((1, 1.0), *((rows, 1.0 + 0.05 * (rows - 8)) for rows in range(9, 257)))
FLAT = table((1, 2.0), (64, 2.0))


def slots_of(*slots: int) -> torch.Tensor:
    return torch.tensor(slots, dtype=torch.int64)


def rows_of(requests: int, *values: float) -> torch.Tensor:
    """The same confidences for every request."""
    return torch.tensor([values] * requests)


def step(planner: Planner, slots: torch.Tensor, confidence: torch.Tensor) -> tuple[Decision, Plan | None]:
    decision = planner.decide(slots)
    return decision, planner.allocate(decision, confidence)
