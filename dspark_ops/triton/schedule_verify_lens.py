"""`schedule_verify_lens` in Triton: the lengths of a budget by selection, in one launch (see `_one_program`)."""

from __future__ import annotations

from torch import Tensor

from ._plan import Plan, run


def schedule_verify_lens(
    survival: Tensor, budget: int, budget_tensor: Tensor | None, step_ns: Tensor | None, base_ns: int,
    base_ns_tensor: Tensor | None, caps: Tensor | None, min_verify_len: int, max_verify_len: int,
    survival_eps: float, max_rows: int, tiers: Tensor | None, fill_tier: bool, verify_lens: Tensor, stats: Tensor,
) -> None:  # fmt: skip
    batch, gamma = survival.shape
    run(Plan(
        batch=batch, gamma=gamma, survival_in=survival, given=True, budget=budget, budget_scalar=budget_tensor,
        step_ns=step_ns, base_ns=base_ns, base_scalar=base_ns_tensor, caps=caps, min_verify_len=min_verify_len,
        max_verify_len=max_verify_len, survival_eps=survival_eps, max_rows=max_rows, tiers=tiers,
        fill_tier=fill_tier, verify_lens=verify_lens, stats=stats,
    ))  # fmt: skip
