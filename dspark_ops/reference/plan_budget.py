"""Specification of `plan_budget`: the budget that maximises tau / T, exactly (DESIGN 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from .candidates import Candidates, execute, find_candidates, most_budget, step_time, write_stats
from .exact import argmax_ratio, at, gain_exceeds, greater, multiply

GLOBAL, FIRST_DROP = 0, 1


def plan_budget(
    survival: Tensor,
    step_ns: Tensor,
    base_ns: int,
    base_ns_tensor: Tensor | None,
    caps: Tensor | None,
    min_verify_len: int,
    max_verify_len: int,
    survival_eps: float,
    search: int,
    max_rows: int,
    min_gain_ppm: int,
    tiers: Tensor | None,
    fill_tier: bool,
    stats: Tensor,
    tier_tau: Tensor | None,
) -> None:
    """b* = argmax tau(b) / T(M0 + b) (smallest on a tie), or the first drop of Algorithm 1; writes stats."""
    base = base_ns if base_ns_tensor is None else base_ns_tensor
    c = find_candidates(survival, caps, min_verify_len, max_verify_len, survival_eps)
    limit = most_budget(c, max_rows).minimum(c.count)
    budgets = torch.arange(c.tau.numel(), device=survival.device)
    t = step_time(step_ns, base, c.min_rows + budgets)

    if search == FIRST_DROP:
        budget = _first_drop(c.tau, t, budgets, limit)
    else:
        allowed = torch.where(budgets <= limit, c.tau, 0)
        budget = argmax_ratio(allowed, t)
        if min_gain_ppm > 0:
            pays = gain_exceeds(at(c.tau, budget), at(t, budget), at(c.tau, limit), at(t, limit), min_gain_ppm)
            budget = torch.where(pays, budget, limit)

    write_stats(stats, c, execute(c, budget, max_rows, tiers, fill_tier), step_ns, base)
    if tier_tau is not None and tiers is not None:
        _write_tier_tau(tier_tau, c, tiers, max_rows)


def _first_drop(tau: Tensor, t: Tensor, budgets: Tensor, limit: Tensor) -> Tensor:
    """The b before the first whose ratio is not above its predecessor's: q_b * T(b-1) <= tau(b-1) * (T(b) - T(b-1))."""
    gain, rise = tau.diff(), t.diff()
    pays = (rise <= 0) | greater(multiply(gain, t[:-1]), multiply(tau[:-1], rise.clamp(min=0)))
    stops = torch.where(pays & (budgets[1:] <= limit), tau.numel(), budgets[1:])
    return torch.cat([stops, stops.new_full((1,), tau.numel())]).min() - 1


def _write_tier_tau(tier_tau: Tensor, c: Candidates, tiers: Tensor, max_rows: int) -> None:
    """tau with the rows filled to each tier, and 1 where the tier is under M0."""
    budgets = (tiers.long() - c.min_rows).clamp(min=0).minimum(most_budget(c, max_rows)).minimum(c.count)
    tier_tau.copy_(torch.stack([c.tau[budgets], (tiers < c.min_rows).long()]))
