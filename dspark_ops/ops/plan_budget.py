"""`plan_budget`: how many draft rows to verify in this step (DESIGN 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..cost import StepCost
from ..reference.plan_budget import plan_budget as reference
from . import _planning


def _check(
    survival: Tensor, step_ns: Tensor, base_ns: int, base_ns_tensor: Tensor | None, caps: Tensor | None,
    min_verify_len: int, max_verify_len: int, survival_eps: float, search: int, max_rows: int, min_gain_ppm: int,
    tiers: Tensor | None, fill_tier: bool, stats: Tensor, tier_tau: Tensor | None,
) -> None:  # fmt: skip
    batch, gamma, device = _planning.check_survival(survival)
    _planning.check_rules(batch, gamma, device, caps, min_verify_len, max_verify_len, survival_eps, max_rows)
    _checks.rank("step_ns", step_ns, ["M"])
    _planning.check_cost(batch, max_verify_len or gamma + 1, device, step_ns, base_ns, base_ns_tensor, max_rows)
    _planning.check_search(search, min_gain_ppm)
    _planning.check_tiers(device, tiers, fill_tier)
    _planning.check_stats("out", stats, device)
    if tier_tau is not None:
        if tiers is None:
            raise ValueError("out_tier_tau: needs tiers")
        _checks.output("out_tier_tau", tier_tau, torch.int64, [2, tiers.shape[0]], device)


_op = operator(
    "plan_budget(Tensor survival, Tensor step_ns, int base_ns, Tensor? base_ns_tensor, Tensor? caps, "
    "int min_verify_len, int max_verify_len, float survival_eps, int search, int max_rows, int min_gain_ppm, "
    "Tensor? tiers, bool fill_tier, Tensor(a!) stats, Tensor(b!)? tier_tau) -> ()",
    reference,
    _check,
)


def plan_budget(
    survival: Tensor,
    step_ns: Tensor | StepCost,
    base_ns: int | Tensor = 0,
    *,
    search: str,
    caps: Tensor | None = None,
    min_verify_len: int = 1,
    max_verify_len: int | None = None,
    survival_eps: float = 1e-6,
    max_rows: int | None = None,
    min_gain_ppm: int = 0,
    tiers: Tensor | None = None,
    fill_tier: bool = False,
    num_reqs: int | None = None,
    context_tokens: int | None = None,
    out: Tensor | None = None,
    out_tier_tau: Tensor | None = None,
) -> Tensor:
    """Budget b* = argmax over b of ``tau(b) / T(M0 + b)``, the smallest b on a tie, in exact integer arithmetic.

    ``tau(b)`` = requests + survival of the mandatory drafts + the b largest candidate survivals, each survival as the
    integer ``floor(s * 2^43)``; ``T(M) = base_ns + step_ns[M]``; ``M0`` = rows that are verified in any case. A
    candidate (r, k) has ``floor_r <= k + 1 < cap_r`` and ``s >= survival_eps``, with ``cap_r = min(max_verify_len,
    caps[r])`` and ``floor_r = min(max(min_verify_len, 1), cap_r)``.

    Args:
        survival: float32 [B, γ], as `prefix_survival` gives it (read as its running minimum in [0, 1]; NaN is 0).
        step_ns: int32 [> rows that can be planned], ns of a step by its rows; or a `StepCost`.
        base_ns: ns added to every entry: an int, or one int64 on the device.
        search: "global" (every b) or "first_drop" (Algorithm 1: stop at the first b whose ratio does not rise). Only
            the latter, or survival of an earlier step, is lossless under sampled acceptance.
        caps: int32 [B], most rows per request; 0 marks an inactive request.
        min_verify_len, max_verify_len: 0 <= min <= max <= N = γ + 1; max None is N.
        survival_eps: in [2^-20, 1].
        max_rows: bound on the rows of the step; b = 0 is allowed whatever it says.
        min_gain_ppm: keep the largest budget unless b* is better by more than so many ppm; 0 (off) to 10^6.
        tiers: int32 [P], ascending captured sizes in rows.
        fill_tier: raise the executed budget to fill the tier with real drafts.
        num_reqs, context_tokens: what a `StepCost` is asked for; default B and none.
        out: int64 [5] to write into.
        out_tier_tau: int64 [2, P]; receives tau with the rows filled to each tier, and 1 where the tier is under M0.

    Returns:
        stats, int64 [5]: budget before fill, rows M, tier (smallest >= M0 + budget, or -1), tau (Q43), T(M) in ns.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device, range or combination, naming the argument.

    On graph replay the tensors may change; every int, bool and string is baked at capture.
    Source: DSpark (arXiv 2607.05147), equation for Θ and Algorithm 1.
    """
    _checks.rank("survival", survival, ["B", "γ"])
    cost = _planning.resolve_cost(step_ns, base_ns, survival, None, num_reqs, context_tokens)
    if out is None:
        out = survival.new_empty(_planning.STATS, dtype=torch.int64)
    args = (
        survival, *cost, *_planning.resolve_rules(caps, min_verify_len, max_verify_len, survival_eps),
        _planning.resolve_search(search), _planning.sentinel("max_rows", max_rows, 0), min_gain_ppm, tiers, fill_tier,
    )  # fmt: skip
    _op(*args, out, out_tier_tau)
    return out
