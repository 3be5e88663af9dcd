"""The candidates of a plan, their order, their expected progress, and what a budget makes of them (DESIGN 3.2-3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .exact import MAX_STEP_NS, Q_ONE, at, q43
from .prefix_survival import unit_interval


@dataclass(frozen=True)
class Candidates:
    """Everything that depends on survival, caps, min, max and eps only. n = B·γ."""

    floor: Tensor  # int64 [B], rows that are always verified
    is_candidate: Tensor  # bool [B, γ]
    rank: Tensor  # int64 [B, γ], place in the order; candidates come before all others
    count: Tensor  # int64 [], number of candidates
    min_rows: Tensor  # int64 [], M0 = Σ floor
    cap_rows: Tensor  # int64 [], Σ cap
    tau: Tensor  # int64 [n + 1], tau(b) in Q43; constant past the last candidate


class Execution(NamedTuple):
    """A budget after its bounds and the tier fill."""

    budget: Tensor  # int64 [], bounded, before fill
    admitted: Tensor  # int64 [], candidates that are verified
    tier: Tensor  # int64 [], smallest tier that holds the bounded budget, or -1


def find_candidates(
    survival: Tensor, caps: Tensor | None, min_verify_len: int, max_verify_len: int, survival_eps: float
) -> Candidates:
    """Order: s descending, then k ascending, then r ascending. Survival is read as its running minimum in [0, 1]."""
    batch, gamma = survival.shape
    width = gamma + 1
    s = unit_interval(survival).cummin(1).values
    k = torch.arange(gamma, device=s.device)

    limit = max_verify_len or width
    cap = torch.full((batch,), limit, device=s.device) if caps is None else caps.long().clamp(0, limit)
    floor = cap.clamp(max=max(min_verify_len, 1))
    is_candidate = (floor[:, None] <= k + 1) & (k + 1 < cap[:, None])
    is_candidate = is_candidate & (s >= torch.full((), survival_eps, dtype=torch.float32, device=s.device))

    # k-major, so that a stable sort by survival alone leaves ties in (k, r) order; -1 puts the others last.
    key = torch.where(is_candidate, s, -1.0).T.reshape(-1)
    order = key.argsort(descending=True, stable=True)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=s.device)

    q = q43(s)
    mandatory = torch.where(k < floor[:, None] - 1, q, 0).sum()
    tau0 = (cap > 0).sum() * Q_ONE + mandatory
    gains = torch.where(is_candidate, q, 0).T.reshape(-1)[order]
    return Candidates(
        floor=floor,
        is_candidate=is_candidate,
        rank=rank.reshape(gamma, batch).T,
        count=is_candidate.sum(),
        min_rows=floor.sum(),
        cap_rows=cap.sum(),
        tau=torch.cat([tau0[None], tau0 + gains.cumsum(0)]),
    )


def most_budget(c: Candidates, max_rows: int) -> Tensor:
    """The largest budget that max_rows allows (b = 0 always is), whether or not there are that many candidates."""
    most = c.cap_rows - c.min_rows
    return most if max_rows < 0 else most.minimum(max_rows - c.min_rows).clamp(min=0)


def execute(c: Candidates, budget: Tensor, max_rows: int, tiers: Tensor | None, fill_tier: bool) -> Execution:
    """Bound the budget, find its tier, and raise it to fill the tier with real drafts if asked."""
    most = most_budget(c, max_rows)
    bounded = budget.clamp(min=0).minimum(most)
    tier = torch.full_like(bounded, -1)
    filled = bounded
    if tiers is not None and tiers.numel():
        none = torch.iinfo(torch.int64).max
        smallest = torch.where(tiers >= c.min_rows + bounded, tiers.long(), none).min()
        found = smallest != none
        tier = torch.where(found, smallest, -1)
        if fill_tier:
            filled = torch.where(found, bounded.maximum((smallest - c.min_rows).minimum(most)), bounded)
    return Execution(budget=bounded, admitted=filled.minimum(c.count), tier=tier)


def step_time(step_ns: Tensor, base_ns: int | Tensor, rows: Tensor) -> Tensor:
    """T(rows) in ns: index clamped into the row, time into [1, 2^31 - 1]."""
    if not isinstance(base_ns, Tensor):
        base_ns = torch.full((), base_ns, dtype=torch.int64, device=step_ns.device)
    base = base_ns.reshape(()).clamp(-(1 << 33), 1 << 33)
    return (base + step_ns[rows.clamp(0, step_ns.numel() - 1)].long()).clamp(1, MAX_STEP_NS)


def write_stats(stats: Tensor, c: Candidates, e: Execution, step_ns: Tensor | None, base_ns: int | Tensor) -> None:
    """stats = bounded budget, M, tier, tau of the executed lengths (Q43), T(M) or 0 without a cost row."""
    rows = c.min_rows + e.admitted
    time = torch.zeros_like(rows) if step_ns is None else step_time(step_ns, base_ns, rows)
    stats.copy_(torch.stack([e.budget, rows, e.tier, at(c.tau, e.admitted), time]))
