"""`allocate_verify_lens`: the front door; confidences to verify lengths in one launch (DESIGN 3.1 to 3.5)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..cost import StepCost
from ..reference.allocate_verify_lens import allocate_verify_lens as reference
from . import _planning


class Plan(NamedTuple):
    """Verify lengths of one step. Pass it back as `out=` to reuse its memory: addresses stay fixed for graph replay."""

    verify_lens: Tensor  # int32 [B], root included; 0 for an inactive request
    cu_seqlens: Tensor  # int32 [B + 1], exclusive prefix sum of verify_lens
    survival: Tensor  # float32 [B, γ]
    stats: Tensor  # int64 [5]: bounded budget before fill, rows M, tier or -1, tau (Q43), T(M) in ns
    confidence: Tensor | None = None  # float32 [B, γ], the calibrated c; None unless planned from logits


def _check(
    values: Tensor, is_logits: bool, scale: Tensor | None, bias: Tensor | None, offset: Tensor | None,
    slots: Tensor | None, history: Tensor | None, history_slots: Tensor | None, fresh: Tensor | None,
    generation: Tensor | None, expected: Tensor | None, budget: int, budget_tensor: Tensor | None,
    step_ns: Tensor | None, base_ns: int, base_ns_tensor: Tensor | None, caps: Tensor | None, min_verify_len: int,
    max_verify_len: int, survival_eps: float, search: int, max_rows: int, min_gain_ppm: int, tiers: Tensor | None,
    fill_tier: bool, verify_lens: Tensor, cu_seqlens: Tensor, survival: Tensor, stats: Tensor,
    calibrated: Tensor | None,
) -> None:  # fmt: skip
    _checks.tensor("logits" if is_logits else "confidence", values, _checks.FLOAT_DTYPES, ["rows", "γ"])
    (rows, gamma), device = values.shape, values.device
    if slots is not None:
        _checks.rank("slots", slots, ["B"])
    batch = rows if slots is None else slots.shape[0]
    _checks.verify_width(batch, gamma)
    _checks.optional("slots", slots, _checks.INDEX_DTYPES, [batch], device)
    _planning.check_calibration(is_logits, gamma, batch if slots is None else None, device, scale, bias, offset)
    _check_history(batch, gamma, device, history, history_slots, fresh, generation, expected)
    _checks.integer("budget", budget, -1)
    if budget_tensor is not None:
        _planning.check_scalar("budget", budget_tensor, device)
    elif budget < 0 and step_ns is None:
        raise ValueError("step_ns: needed to search a budget; leave it out only when budget is given")
    _planning.check_rules(batch, gamma, device, caps, min_verify_len, max_verify_len, survival_eps, max_rows)
    _planning.check_cost(batch, max_verify_len or gamma + 1, device, step_ns, base_ns, base_ns_tensor, max_rows)
    _planning.check_search(search, min_gain_ppm)
    _planning.check_tiers(device, tiers, fill_tier)
    _checks.output("out.verify_lens", verify_lens, torch.int32, [batch], device)
    _checks.output("out.cu_seqlens", cu_seqlens, torch.int32, [batch + 1], device)
    _checks.output("out.survival", survival, torch.float32, [batch, gamma], device)
    _planning.check_stats("out.stats", stats, device)
    _checks.optional_output("out.confidence", calibrated, torch.float32, [batch, gamma], device)


def _check_history(
    batch: int, gamma: int, device: torch.device, history: Tensor | None, history_slots: Tensor | None,
    fresh: Tensor | None, generation: Tensor | None, expected: Tensor | None,
) -> None:  # fmt: skip
    if history is None:
        for name, t in (("history_slots", history_slots), ("fresh", fresh), ("generation", generation)):
            if t is not None:
                raise ValueError(f"{name}: needs history")
        if expected is not None:
            raise ValueError("expected: needs history")
        return
    _checks.tensor("history", history, _checks.FLOAT_DTYPES, [batch if history_slots is None else None, gamma], device)
    _checks.optional("history_slots", history_slots, _checks.INDEX_DTYPES, [batch], device)
    _planning.check_freshness(batch, history.shape[0], device, fresh, generation, expected)


_op = operator(
    "allocate_verify_lens(Tensor values, bool is_logits, Tensor? scale, Tensor? bias, Tensor? offset, Tensor? slots, "
    "Tensor? history, Tensor? history_slots, Tensor? fresh, Tensor? generation, Tensor? expected, int budget, "
    "Tensor? budget_tensor, Tensor? step_ns, int base_ns, Tensor? base_ns_tensor, Tensor? caps, int min_verify_len, "
    "int max_verify_len, float survival_eps, int search, int max_rows, int min_gain_ppm, Tensor? tiers, "
    "bool fill_tier, Tensor(a!) verify_lens, Tensor(b!) cu_seqlens, Tensor(c!) survival, Tensor(d!) stats, "
    "Tensor(e!)? calibrated) -> ()",
    reference,
    _check,
)


def allocate_verify_lens(
    confidence: Tensor | None = None,
    step_ns: Tensor | StepCost | None = None,
    base_ns: int | Tensor = 0,
    *,
    logits: Tensor | None = None,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    offset: Tensor | None = None,
    slots: Tensor | None = None,
    history: Tensor | None = None,
    history_slots: Tensor | None = None,
    fresh: Tensor | None = None,
    generation: Tensor | None = None,
    expected: Tensor | None = None,
    caps: Tensor | None = None,
    min_verify_len: int = 1,
    max_verify_len: int | None = None,
    survival_eps: float = 1e-6,
    search: str | None = None,
    max_rows: int | None = None,
    min_gain_ppm: int = 0,
    tiers: Tensor | None = None,
    fill_tier: bool = False,
    budget: int | Tensor | None = None,
    num_reqs: int | None = None,
    context_tokens: int | None = None,
    out: Plan | None = None,
) -> Plan:
    """Verify lengths that maximise expected tokens per second: survival, budget, allocation and offsets in one call.

    Equals `prefix_survival`, then `plan_budget` (on `history` where given; skipped when `budget` is given), then
    `schedule_verify_lens` on the current survival, then an exclusive prefix sum.

    Which budget is lossless: with greedy acceptance, any. With sampled acceptance a plan must not look at a token's own
    future, so take the budget from `history` (an earlier step's confidences) or give it, and let current confidences
    only rank; or use ``search="first_drop"``. With neither history nor budget, `search` must be named.

    Args:
        confidence: c, float32, bfloat16 or float16 [B, γ], or [slots, γ] with `slots`. Give this or `logits`.
        step_ns: int32 [> rows that can be planned], ns of a step by its rows, or a `StepCost`; optional with `budget`.
        base_ns: ns added to every entry: an int, or one int64 on the device.
        logits, scale, bias, offset, slots: see `prefix_survival`.
        history: the same kind as the current input (confidences or logits, calibrated alike) of an earlier step,
            [B, γ], or [slots, γ] with `history_slots`. A row out of range is not fresh.
        history_slots: int32 or int64 [B].
        fresh, generation, expected: which history rows hold; see `prefix_survival`. One that does not counts as
            survival 1: a new request is judged optimistically.
        caps, min_verify_len, max_verify_len, survival_eps, max_rows, min_gain_ppm, tiers, fill_tier, num_reqs,
            context_tokens: see `plan_budget`.
        search: "global" or "first_drop". Default "global" with history; must be left out with `budget`.
        budget: rows above the mandatory ones, int >= 0 or one int64 on the device, instead of a search.
        out: a `Plan` to write into, as an earlier call returned it.

    Returns:
        `Plan`: verify_lens, cu_seqlens, survival, stats and (from logits) confidence.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device, range or combination, naming the argument.

    Under torch.compile pass a cost's row and base, not the `StepCost`: it is asked on the host.
    On graph replay every tensor's values may change, `base_ns` and `budget` given as tensors included; ints, bools and
    strings are baked at capture. Nothing is copied to the host.
    Source: DSpark (arXiv 2607.05147).
    """
    values, is_logits = _planning.resolve_input(confidence, logits, slots)
    if budget is None:
        budget_int, budget_tensor = -1, None
        if search is None:
            if history is None:
                raise ValueError(_planning.SEARCH_CHOICE)
            search = "global"
    else:
        budget_int, budget_tensor = _given_budget(budget, search, history, min_gain_ppm)
        search = "global"

    cost = _planning.resolve_cost(step_ns, base_ns, values, slots, num_reqs, context_tokens)
    args = (
        values, is_logits, scale, bias, offset, slots, history, history_slots, fresh, generation, expected,
        budget_int, budget_tensor, *cost, *_planning.resolve_rules(caps, min_verify_len, max_verify_len, survival_eps),
        _planning.resolve_search(search), _planning.sentinel("max_rows", max_rows, 0), min_gain_ppm, tiers, fill_tier,
    )  # fmt: skip
    if out is None:
        out = _new_plan(values, slots, is_logits)
    else:
        _checks.result("out", out, Plan)
    _op(*args, *out)
    return out


def _given_budget(
    budget: int | Tensor, search: str | None, history: Tensor | None, min_gain_ppm: int
) -> tuple[int, Tensor | None]:
    """A budget excludes everything that would search for one."""
    for name, given in (
        ("search", search is not None),
        ("history", history is not None),
        ("min_gain_ppm", min_gain_ppm),
    ):
        if given:
            raise ValueError(f"{name}: not together with budget, which replaces the search")
    if not isinstance(budget, Tensor):
        _checks.integer("budget", budget, 0)
    return _planning.resolve_budget(budget)


def _new_plan(values: Tensor, slots: Tensor | None, is_logits: bool) -> Plan:
    new, gamma = values.new_empty, values.shape[-1]
    batch = (values if slots is None else slots).shape[0]
    return Plan(
        verify_lens=new(batch, dtype=torch.int32),
        cu_seqlens=new(batch + 1, dtype=torch.int32),
        survival=new((batch, gamma), dtype=torch.float32),
        stats=new(_planning.STATS, dtype=torch.int64),
        confidence=new((batch, gamma), dtype=torch.float32) if is_logits else None,
    )
