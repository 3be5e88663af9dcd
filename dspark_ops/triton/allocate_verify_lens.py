"""`allocate_verify_lens` in Triton: confidences to lengths, offsets and stats in one launch (see `_one_program`)."""

from __future__ import annotations

from torch import Tensor

from ._plan import Plan, run


def allocate_verify_lens(
    values: Tensor, is_logits: bool, scale: Tensor | None, bias: Tensor | None, offset: Tensor | None,
    slots: Tensor | None, history: Tensor | None, history_slots: Tensor | None, fresh: Tensor | None,
    generation: Tensor | None, expected: Tensor | None, budget: int, budget_tensor: Tensor | None,
    step_ns: Tensor | None, base_ns: int, base_ns_tensor: Tensor | None, caps: Tensor | None, min_verify_len: int,
    max_verify_len: int, survival_eps: float, search: int, max_rows: int, min_gain_ppm: int, tiers: Tensor | None,
    fill_tier: bool, verify_lens: Tensor, cu_seqlens: Tensor, survival: Tensor, stats: Tensor,
    calibrated: Tensor | None,
) -> None:  # fmt: skip
    batch, gamma = survival.shape
    run(Plan(
        batch=batch, gamma=gamma, values=values, is_logits=is_logits, scale=scale, bias=bias, offset=offset,
        slots=slots, history=history, history_slots=history_slots, fresh=fresh, generation=generation,
        expected=expected, given=budget >= 0 or budget_tensor is not None, budget=budget, budget_scalar=budget_tensor,
        step_ns=step_ns, base_ns=base_ns, base_scalar=base_ns_tensor, caps=caps, min_verify_len=min_verify_len,
        max_verify_len=max_verify_len, survival_eps=survival_eps, search=search, max_rows=max_rows,
        min_gain_ppm=min_gain_ppm, tiers=tiers, fill_tier=fill_tier, verify_lens=verify_lens, cu_seqlens=cu_seqlens,
        survival=survival, stats=stats, calibrated=calibrated,
    ))  # fmt: skip
