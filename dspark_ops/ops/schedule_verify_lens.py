"""`schedule_verify_lens`: which rows a given budget verifies (DESIGN 3.5)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..cost import StepCost
from ..reference.schedule_verify_lens import schedule_verify_lens as reference
from . import _planning


class Schedule(NamedTuple):
    """Lengths of a given budget."""

    verify_lens: Tensor  # int32 [B]
    stats: Tensor  # int64 [5]: bounded budget before fill, rows M, tier or -1, tau (Q43), T(M) in ns


def _check(
    survival: Tensor, budget: int, budget_tensor: Tensor | None, step_ns: Tensor | None, base_ns: int,
    base_ns_tensor: Tensor | None, caps: Tensor | None, min_verify_len: int, max_verify_len: int,
    survival_eps: float, max_rows: int, tiers: Tensor | None, fill_tier: bool, verify_lens: Tensor, stats: Tensor,
) -> None:  # fmt: skip
    batch, gamma, device = _planning.check_survival(survival)
    _checks.integer("budget", budget, 0)
    if budget_tensor is not None:
        _planning.check_scalar("budget", budget_tensor, device)
    _planning.check_rules(batch, gamma, device, caps, min_verify_len, max_verify_len, survival_eps, max_rows)
    _planning.check_cost(batch, max_verify_len or gamma + 1, device, step_ns, base_ns, base_ns_tensor, max_rows)
    _planning.check_tiers(device, tiers, fill_tier)
    _checks.output("out.verify_lens", verify_lens, torch.int32, [batch], device)
    _planning.check_stats("out.stats", stats, device)


_op = operator(
    "schedule_verify_lens(Tensor survival, int budget, Tensor? budget_tensor, Tensor? step_ns, int base_ns, "
    "Tensor? base_ns_tensor, Tensor? caps, int min_verify_len, int max_verify_len, float survival_eps, int max_rows, "
    "Tensor? tiers, bool fill_tier, Tensor(a!) verify_lens, Tensor(b!) stats) -> ()",
    reference,
    _check,
)


def schedule_verify_lens(
    survival: Tensor,
    budget: int | Tensor,
    *,
    step_ns: Tensor | StepCost | None = None,
    base_ns: int | Tensor = 0,
    caps: Tensor | None = None,
    min_verify_len: int = 1,
    max_verify_len: int | None = None,
    survival_eps: float = 1e-6,
    max_rows: int | None = None,
    tiers: Tensor | None = None,
    fill_tier: bool = False,
    num_reqs: int | None = None,
    context_tokens: int | None = None,
    out: Schedule | None = None,
) -> Schedule:
    """Lengths ``l_r = floor_r`` + the number of r's candidates among the first `budget` of the order.

    Order: survival descending, then k ascending, then r ascending; nothing else decides. The budget counts rows above
    the mandatory ones. It is bounded to [0, Σ cap_r - M0] and by `max_rows`; a candidate below `survival_eps` is never
    verified, so fewer rows than the budget may be used.

    Args:
        survival: float32 [B, γ], as `prefix_survival` gives it (read as its running minimum in [0, 1]; NaN is 0).
        budget: int >= 0, or one int64 on the device (out of range: bounded).
        step_ns, base_ns: only for T(M) in the stats; see `plan_budget`.
        caps, min_verify_len, max_verify_len, survival_eps, max_rows, tiers, fill_tier, num_reqs, context_tokens: see
            `plan_budget`.
        out: a `Schedule` to write into.

    Returns:
        `Schedule`: verify_lens int32 [B] (root included, 0 for an inactive request) and stats int64 [5].

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device, range or combination, naming the argument.

    On graph replay the tensors may change; every int and bool is baked at capture.
    Source: DSpark (arXiv 2607.05147), Algorithm 1, admission order.
    """
    _checks.rank("survival", survival, ["B", "γ"])
    cost = _planning.resolve_cost(step_ns, base_ns, survival, None, num_reqs, context_tokens)
    if out is None:
        out = Schedule(
            survival.new_empty(survival.shape[0], dtype=torch.int32),
            survival.new_empty(_planning.STATS, dtype=torch.int64),
        )
    else:
        _checks.result("out", out, Schedule)
    args = (
        survival, *_planning.resolve_budget(budget), *cost,
        *_planning.resolve_rules(caps, min_verify_len, max_verify_len, survival_eps),
        _planning.sentinel("max_rows", max_rows, 0), tiers, fill_tier,
    )  # fmt: skip
    _op(*args, *out)
    return out
