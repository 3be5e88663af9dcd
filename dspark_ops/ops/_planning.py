"""What the planning operators share: checks of inputs and rules, and the forms in which cost and budget may come."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .. import _checks
from ..cost import StepCost

GLOBAL, FIRST_DROP = 0, 1
SEARCHES = {"global": GLOBAL, "first_drop": FIRST_DROP}
STATS = 5  # budget, rows, tier, tau (Q43), T in ns

SEARCH_CHOICE = (
    "search: must be named when neither history nor budget is given. 'global' is the best budget, but on current "
    "confidences it is lossless with greedy acceptance only; 'first_drop' is safe for sampled acceptance, but stops at "
    "the first step up of a staircase cost; best of all, pass history= (an earlier step's confidences)"
)


class Cost(NamedTuple):
    """A step cost in the operators' form."""

    step_ns: Tensor | None
    base_ns: int
    base_ns_tensor: Tensor | None


def resolve_cost(
    step_ns: Tensor | StepCost | None,
    base_ns: int | Tensor,
    values: Tensor,
    slots: Tensor | None,
    num_reqs: int | None,
    context_tokens: int | None,
) -> Cost:
    """A tensor row as it is; a StepCost asked for its row and base, for the batch that `values` and `slots` tell."""
    if step_ns is not None and not isinstance(step_ns, Tensor):
        if not hasattr(step_ns, "row"):
            raise TypeError(f"step_ns: expected a torch.Tensor or a StepCost, got {type(step_ns).__name__}")
        if isinstance(base_ns, Tensor) or base_ns != 0:
            raise ValueError("base_ns: must be left out with a StepCost, which has its own base")
        gamma = getattr(step_ns, "gamma", None)
        if gamma is not None and gamma != values.shape[-1]:
            raise ValueError(f"step_ns: expected a table for γ = {values.shape[-1]}, got one for γ = {gamma}")
        batch = (values if slots is None else slots).shape[0]
        reqs = batch if num_reqs is None else num_reqs
        # A power of two, so that a changing batch asks for few different rows.
        rows = min(1 << (batch * (values.shape[-1] + 1)).bit_length(), _checks.MAX_VERIFY_ROWS)
        return Cost(step_ns.row(rows, values.device, reqs), step_ns.base(reqs, context_tokens), None)
    for name, given in (("num_reqs", num_reqs), ("context_tokens", context_tokens)):
        if given is not None:
            raise ValueError(f"{name}: only a StepCost asks for it")
    if isinstance(base_ns, Tensor):
        return Cost(step_ns, 0, base_ns)
    if step_ns is None and base_ns != 0:
        raise ValueError("base_ns: needs step_ns")
    return Cost(step_ns, base_ns, None)


def resolve_search(search: str) -> int:
    """The operators' number of a search; ValueError for an unknown one."""
    if not isinstance(search, str) or search not in SEARCHES:
        raise ValueError(f"search: expected 'global' or 'first_drop', got {search!r}")
    return SEARCHES[search]


def check_survival(survival: Tensor) -> tuple[int, int, torch.device]:
    """Require float32 [B, γ] within the limits; returns B, γ and the device."""
    _checks.tensor("survival", survival, torch.float32, ["B", "γ"])
    batch, gamma = survival.shape
    _checks.verify_width(batch, gamma)
    return batch, gamma, survival.device


def check_calibration(
    is_logits: bool, gamma: int, rows: int | None, device: torch.device, scale: Tensor | None, bias: Tensor | None,
    offset: Tensor | None,
) -> None:  # fmt: skip
    """scale, bias float32 [γ], offset float32 [rows], all only with logits."""
    for name, t, size in (("scale", scale, gamma), ("bias", bias, gamma), ("offset", offset, rows)):
        if t is not None:
            if not is_logits:
                raise ValueError(f"{name}: needs logits; confidences are already calibrated")
            _checks.tensor(name, t, torch.float32, [size], device)


def check_freshness(
    batch: int, rows: int, device: torch.device, fresh: Tensor | None, generation: Tensor | None,
    expected: Tensor | None,
) -> None:  # fmt: skip
    """fresh bool [B], or generation int64 [rows] with expected int64 [B]."""
    if (generation is None) != (expected is None):
        missing = "generation" if generation is None else "expected"
        raise ValueError(f"{missing}: generation and expected must be given together")
    if fresh is not None and generation is not None:
        raise ValueError("fresh: give either fresh or generation with expected, not both")
    _checks.optional("fresh", fresh, torch.bool, [batch], device)
    _checks.optional("generation", generation, torch.int64, [rows], device)
    _checks.optional("expected", expected, torch.int64, [batch], device)


def check_rules(
    batch: int, gamma: int, device: torch.device, caps: Tensor | None, min_verify_len: int, max_verify_len: int,
    survival_eps: float, max_rows: int,
) -> None:  # fmt: skip
    """0 <= min <= max <= N (max 0 stands for N), 2^-20 <= eps <= 1, max_rows >= 0 (-1: none), caps int32 [B]."""
    width = gamma + 1
    if max_verify_len:
        _checks.integer("max_verify_len", max_verify_len, 1, width)
    _checks.integer("min_verify_len", min_verify_len, 0, max_verify_len or width)
    _checks.number("survival_eps", survival_eps, 2.0**-20, 1.0)
    _checks.integer("max_rows", max_rows, -1)
    _checks.optional("caps", caps, torch.int32, [batch], device)


def check_cost(
    batch: int, width: int, device: torch.device, step_ns: Tensor | None, base_ns: int, base_ns_tensor: Tensor | None,
    max_rows: int,
) -> None:  # fmt: skip
    """step_ns int32, long enough for every row count that can be searched; base an int or an int64 scalar."""
    _checks.integer("base_ns", base_ns, -_checks.MAX_INT)
    if base_ns_tensor is not None:
        check_scalar("base_ns", base_ns_tensor, device)
    if step_ns is not None:
        _checks.tensor("step_ns", step_ns, torch.int32, ["M"], device)
        needed = batch * width if max_rows < 0 else min(batch * width, max_rows)
        if step_ns.shape[0] <= needed:
            raise ValueError(f"step_ns: expected more than {needed} entries (rows 0..{needed}), got {step_ns.shape[0]}")


def check_scalar(name: str, t: Tensor, device: torch.device) -> None:
    """Require one int64 on the device."""
    _checks.tensor(name, t, torch.int64, [None] * t.dim() if isinstance(t, Tensor) else [], device)
    if t.numel() != 1:
        raise ValueError(f"{name}: expected one int64 value, got shape {list(t.shape)}")


def check_tiers(device: torch.device, tiers: Tensor | None, fill_tier: bool) -> None:
    """tiers int32 [P], P >= 1; ascending (checked on values with DSPARK_CHECK=1)."""
    if tiers is None:
        if fill_tier:
            raise ValueError("fill_tier: needs tiers")
        return
    _checks.tensor("tiers", tiers, torch.int32, ["P"], device)
    if tiers.shape[0] < 1:
        raise ValueError("tiers: expected at least one tier, got none")
    if _checks.values_known(tiers) and bool((tiers.diff() <= 0).any()):
        raise ValueError(f"tiers: expected strictly ascending values, got {tiers.tolist()}")


def check_stats(name: str, stats: Tensor, device: torch.device) -> None:
    """stats is int64 [5]."""
    _checks.output(name, stats, torch.int64, [STATS], device)


def check_search(search: int, min_gain_ppm: int) -> None:
    """search 0 or 1; min_gain_ppm in [0, 10^6], and only with the global search."""
    _checks.integer("search", search, GLOBAL, FIRST_DROP)
    _checks.integer("min_gain_ppm", min_gain_ppm, 0, 1_000_000)
    if min_gain_ppm and search == FIRST_DROP:
        raise ValueError(
            "min_gain_ppm: not with search='first_drop': comparing with the largest budget looks at every candidate"
        )


def resolve_budget(budget: int | Tensor) -> tuple[int, Tensor | None]:
    """A budget as the operators take it: an int, or an int64 scalar on the device."""
    return (0, budget) if isinstance(budget, Tensor) else (budget, None)


def sentinel(name: str, value: int | None, low: int) -> int:
    """The operators' form of an optional int >= low: low - 1 stands for None."""
    if value is None:
        return low - 1
    _checks.integer(name, value, low)
    return value


def resolve_rules(
    caps: Tensor | None, min_verify_len: int, max_verify_len: int | None, survival_eps: float
) -> tuple[Tensor | None, int, int, float]:
    """The rules in the operators' order, max_verify_len 0 standing for N."""
    return caps, min_verify_len, sentinel("max_verify_len", max_verify_len, 1), survival_eps


def resolve_input(confidence: Tensor | None, logits: Tensor | None, slots: Tensor | None) -> tuple[Tensor, bool]:
    """The one of both that is given, [rows, γ], and whether it holds logits; the tensors that tell B and γ are such."""
    if (confidence is None) == (logits is None):
        raise ValueError("confidence: give exactly one of confidence and logits")
    is_logits = confidence is None
    values = logits if confidence is None else confidence
    assert values is not None
    _checks.rank("logits" if is_logits else "confidence", values, ["rows", "γ"])
    if slots is not None:
        _checks.rank("slots", slots, ["B"])
    return values, is_logits
