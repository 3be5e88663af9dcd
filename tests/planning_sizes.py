"""The planning operators' arguments at a chosen size, for the back ends whose path depends on it."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

from dspark_ops.testing.generate import ints, poison
from dspark_ops.testing.planning import confidences, cost_row

KINDS = ["near", "ties", "uniform", "equal"]  # of confidences


def plan_arguments(batch: int, gamma: int, kind: str, mode: str, low: int = 1) -> dict[str, tuple[Any, ...]]:
    """The planning operators' arguments of this size, budget searched, from history, or given."""
    rng, rows = Random(f"{batch}/{gamma}/{mode}"), batch * (gamma + 1)
    c = confidences(rng, batch, gamma, kind)
    history = confidences(rng, batch, gamma, kind) if mode == "history" else None
    budget = rng.randint(1, rows - 1) if mode == "budget" else -1
    search = 1 if mode == "first_drop" else 0
    cost = (cost_row(rng, rows), 1000, None)
    rules = (ints(rng, batch, 1, gamma + 1), low, 0, 1e-6)
    tiers = torch.tensor(sorted({rng.randint(1, rows) for _ in range(5)}), dtype=torch.int32)
    survival = c.nan_to_num(0.0).clamp(0, 1).cumprod(1)
    return {
        "allocate_verify_lens": (
            c, False, *(None,) * 4, history, *(None,) * 4, budget, None, *cost, *rules, search, -1, 0, tiers, True,
            poison([batch], torch.int32), poison([batch + 1], torch.int32), poison([batch, gamma], torch.float32),
            poison([5], torch.int64), None,
        ),
        "plan_budget": (
            survival, *cost, *rules, search, -1, 0, tiers, False, poison([5], torch.int64),
            poison([2, tiers.numel()], torch.int64),
        ),
        "schedule_verify_lens": (
            survival, max(budget, rows // 3), None, *cost, *rules, -1, tiers, False, poison([batch], torch.int32),
            poison([5], torch.int64),
        ),
    }  # fmt: skip
