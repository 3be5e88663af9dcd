"""`plan_budget` in Triton: survival to the best budget and its stats in one launch (see `_one_program`)."""

from __future__ import annotations

from torch import Tensor

from ._plan import Plan, run


def plan_budget(
    survival: Tensor, step_ns: Tensor, base_ns: int, base_ns_tensor: Tensor | None, caps: Tensor | None,
    min_verify_len: int, max_verify_len: int, survival_eps: float, search: int, max_rows: int, min_gain_ppm: int,
    tiers: Tensor | None, fill_tier: bool, stats: Tensor, tier_tau: Tensor | None,
) -> None:  # fmt: skip
    batch, gamma = survival.shape
    run(Plan(
        batch=batch, gamma=gamma, survival_in=survival, step_ns=step_ns, base_ns=base_ns, base_scalar=base_ns_tensor,
        caps=caps, min_verify_len=min_verify_len, max_verify_len=max_verify_len, survival_eps=survival_eps,
        search=search, max_rows=max_rows, min_gain_ppm=min_gain_ppm, tiers=tiers, fill_tier=fill_tier, stats=stats,
        tier_tau=tier_tau,
    ))  # fmt: skip
