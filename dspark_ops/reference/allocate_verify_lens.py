"""Specification of `allocate_verify_lens`: survival, budget, lengths and offsets, composed of the other operators."""

from __future__ import annotations

import torch
from torch import Tensor

from .plan_budget import plan_budget
from .prefix_survival import prefix_survival
from .schedule_verify_lens import schedule_verify_lens


def allocate_verify_lens(
    values: Tensor,
    is_logits: bool,
    scale: Tensor | None,
    bias: Tensor | None,
    offset: Tensor | None,
    slots: Tensor | None,
    history: Tensor | None,
    history_slots: Tensor | None,
    fresh: Tensor | None,
    generation: Tensor | None,
    expected: Tensor | None,
    budget: int,
    budget_tensor: Tensor | None,
    step_ns: Tensor | None,
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
    verify_lens: Tensor,
    cu_seqlens: Tensor,
    survival: Tensor,
    stats: Tensor,
    calibrated: Tensor | None,
) -> None:
    """The budget is given, or searched on `history` where there is one, else on the current survival."""
    calibration = (scale, bias, offset)
    prefix_survival(
        values, is_logits, *calibration, slots, slots, False, None, None, None, survival, calibrated
    )  # fmt: skip
    rules = (caps, min_verify_len, max_verify_len, survival_eps)

    if budget < 0 and budget_tensor is None:
        assert step_ns is not None  # the public function and the schema check see to it
        planning = survival
        if history is not None:
            planning = torch.empty_like(survival)
            prefix_survival(
                history, is_logits, *calibration, history_slots, slots,
                True, fresh, generation, expected, planning, None,
            )  # fmt: skip
        plan = torch.empty_like(stats)
        plan_budget(
            planning, step_ns, base_ns, base_ns_tensor, *rules, search, max_rows, min_gain_ppm, None, False, plan, None
        )  # fmt: skip
        budget_tensor = plan[0]

    schedule_verify_lens(
        survival, budget, budget_tensor, step_ns, base_ns, base_ns_tensor,
        *rules, max_rows, tiers, fill_tier, verify_lens, stats,
    )  # fmt: skip
    cu_seqlens[0] = 0
    cu_seqlens[1:] = verify_lens.cumsum(0)
