"""Specification of `schedule_verify_lens`: the rows of a given budget, per request (DESIGN 3.5)."""

from __future__ import annotations

import torch
from torch import Tensor

from .candidates import execute, find_candidates, write_stats


def schedule_verify_lens(
    survival: Tensor,
    budget: int,
    budget_tensor: Tensor | None,
    step_ns: Tensor | None,
    base_ns: int,
    base_ns_tensor: Tensor | None,
    caps: Tensor | None,
    min_verify_len: int,
    max_verify_len: int,
    survival_eps: float,
    max_rows: int,
    tiers: Tensor | None,
    fill_tier: bool,
    verify_lens: Tensor,
    stats: Tensor,
) -> None:
    """l_r = floor_r + the number of r's candidates among the first `budget` of the order."""
    c = find_candidates(survival, caps, min_verify_len, max_verify_len, survival_eps)
    wanted = torch.full_like(c.count, budget) if budget_tensor is None else budget_tensor.reshape(())
    e = execute(c, wanted, max_rows, tiers, fill_tier)
    verify_lens.copy_(c.floor + (c.is_candidate & (c.rank < e.admitted)).sum(1))
    write_stats(stats, c, e, step_ns, base_ns if base_ns_tensor is None else base_ns_tensor)
