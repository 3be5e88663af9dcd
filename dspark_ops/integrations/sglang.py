"""SGLang's DSpark operators under SGLang's own signatures, switched on by one call and off by another.

    from dspark_ops.integrations import sglang
    sglang.enable(gamma=7)  # after SGLang is imported, before a graph is captured
    ...
    sglang.disable()

Written against SGLang 0.5.23. Each function here has the name, the keyword arguments and the results of the one that it
stands in for; `enable` puts them where SGLang looks them up, in its own process only: SGLang starts one per rank, and
each that plans or verifies needs the call. Nothing is kept from one call to the next but cost tables, so a call may be
captured in a graph whatever was called before. What differs, and why:

- A verify length of 0 gives a correct length of 0, where SGLang computes -1 (a row that was never run).
- `min_verify_len > 1` or `max_verify_len < γ + 1`: mandatory rows are no candidates and candidates end at the cap, so
  that no row of the budget is lost to a clamp. With SGLang's defaults (1 and γ + 1) the lengths are the same.
- Survival is the float32 product, left to right, on every device; `torch.cumprod` differs between devices in the last
  bit. A `survival_eps` below 2^-20 counts as 2^-20.
- The budget is exact; SGLang's float64 can pick another one where two are within its rounding.
- Padding a batch that does not fit its graph leaves the lengths as they are, where SGLang makes one negative.
- `extend_start_loc` is a view of `qo_indptr`, not a copy. SGLang writes only the latter in place, before a replay, and
  the starts follow it.
- A draft of another length than `enable` was told is refused.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import _checks
from ..cost import AdditiveTable, FloorTable
from ..ops.allocate_verify_lens import allocate_verify_lens
from ..ops.finalize_accept import finalize_accept
from ..ops.pad_to_bucket import pad_to_bucket
from ..ops.plan_budget import plan_budget
from ..ops.ragged_layout import ragged_layout
from ..ops.scatter_to_strided import scatter_to_strided

_OPS = "sglang.kernels.ops.speculative"
_PLANNER = "sglang.srt.speculative.dspark_components.dspark_planner"
_MIN_EPS = 2.0**-20
_Q43 = 2.0**43


def schedule_verify_lens(*, confidence: Tensor, budget: int, cfg: Any) -> Tensor:
    """`ScheduleVerifyLensTopk`: int32 [B]. One launch, where SGLang has three."""
    return allocate_verify_lens(confidence, budget=budget, **_rules(cfg)).verify_lens


def compute_verify_token_budget(*, history_survival_probs: Tensor, sps_table: Any, cfg: Any) -> Any:
    """`compute_verify_token_budget`: its decision, from host survival and either of SGLang's cost tables."""
    stats = plan_budget(history_survival_probs, _table(sps_table), search="global", **_rules(cfg))
    budget, _, _, tau, step_ns = stats.tolist()
    seconds = step_ns * 1e-9
    decision = sys.modules[_PLANNER].VerifyBudgetDecision
    return decision(budget=budget, predicted_step_seconds=seconds, predicted_theta=tau / _Q43 / seconds)


def build_qo_indptr(*, verify_lens: Tensor) -> Any:
    """`BuildQoIndptr`: offsets int32 [B + 1], and the starts as a view of them."""
    indptr = ragged_layout(verify_lens.int(), 0).cu_seqlens
    result = sys.modules[f"{_OPS}.ragged_verify_kernels"].QoIndptrResult
    return result(qo_indptr=indptr, extend_start_loc=indptr[:-1])


def padded_to_bucket(*, verify_lens: Tensor, graph_num_tokens: int, bs: int, padded_bs: int) -> Tensor:
    """`PaddedToBucket`: int32 [padded_bs]."""
    return pad_to_bucket(verify_lens[:bs].int(), graph_num_tokens, padded_bs).padded


def compact_row_index(*, verify_lens: Tensor, padded_total: int, device: Any) -> tuple[Tensor, Tensor, Tensor]:
    """`compact_row_index`: request (B on padding), row within it, and whether the row is real.

    One launch for the rows, and four to turn them into what SGLang wants: int64, and another mark on padding.
    """
    lens = verify_lens.to(device=device, dtype=torch.int32)
    layout = ragged_layout(lens, padded_total)
    valid = layout.row_request >= 0
    request = torch.where(valid, layout.row_request, lens.shape[0])
    return request.long(), layout.row_offset.long(), valid


def compact_verify_ids(*, draft_block_ids: Tensor, draft_tokens: Tensor, layout: Any, device: Any) -> Tensor:
    """`compact_verify_ids`: int64 [graph_num_tokens]. A launch and a copy of the roots; SGLang has four to five."""
    lens = layout.verify_lens.to(device=device, dtype=torch.int32)
    root, drafts = draft_block_ids[:, 0].long(), draft_tokens.long()
    ids = ragged_layout(lens, layout.graph_num_tokens, root_tokens=root, draft_tokens=drafts).verify_ids
    assert ids is not None
    return ids


def scatter_compact_to_strided(
    *, compact: Tensor, layout: Any, fill_value: float, verify_num_draft_tokens: int
) -> Tensor:
    """`ScatterCompactToStrided`: [B * N, D], from the offsets that the layout already has."""
    rows = compact[: layout.graph_num_tokens]
    fill = _fill(compact, fill_value)
    return scatter_to_strided(rows, layout.qo_indptr_device, verify_num_draft_tokens, fill)


def scatter_compact_to_strided_into(
    *, compact: Tensor, verify_lens: Tensor, out: Tensor, stride: int, fill_value: float
) -> Tensor:
    """`scatter_compact_to_strided_into`: the same into a workspace; two launches, where SGLang has four to five."""
    offsets = ragged_layout(verify_lens.int(), 0).cu_seqlens
    return scatter_to_strided(compact, offsets, stride, _fill(compact, fill_value), out=out)


def build_out_tokens(
    *, draft_tokens: Tensor, correct_len: Tensor, bonus: Tensor, verify_num_draft_tokens: int, gamma: int
) -> Tensor:
    """`BuildOutTokens`: int64 [B, N]."""
    return finalize_accept(
        correct_len.int(), draft_tokens.long(), _uncut(correct_len, gamma), bonus=bonus.long()
    ).out_tokens


def cap_correct_len(*, correct_len: Tensor, verify_lens: Tensor, gamma: int) -> tuple[Tensor, Tensor]:
    """`CapCorrectLen`: accepted length cut at the verify length, and what was cut off."""
    lens = verify_lens.to(device=correct_len.device, dtype=torch.int32)
    drafts, bonus = _any_tokens(correct_len, gamma)
    done = finalize_accept(correct_len.int(), drafts, lens, bonus=bonus)
    return done.correct_len.to(correct_len.dtype), done.trimmed.to(correct_len.dtype)


def finalize_accept_lens(*, correct_len: Tensor, cap_trim_lens: Tensor, prefix_lens: Tensor, gamma: int) -> Any:
    """`FinalizeAcceptLens`: committed tokens and the new sequence lengths."""
    drafts, bonus = _any_tokens(correct_len, gamma)
    done = finalize_accept(correct_len.int(), drafts, _uncut(correct_len, gamma), prefix_lens, bonus=bonus)
    result = sys.modules[f"{_OPS}.dspark.dspark_accept"].FinalizeAcceptLensResult
    return result(
        commit_lens=done.commit_len, new_seq_lens=done.new_seq_len, cap_trim_lens=cap_trim_lens.to(torch.int32)
    )


# What a caller of only a part of `finalize_accept` does not have. Made anew in each call: a kept tensor that was made
# during a capture holds nothing until the graph is replayed, and one that is dropped may still be read by a graph.


def _any_tokens(correct_len: Tensor, gamma: int) -> tuple[Tensor, Tensor]:
    """Drafts and a bonus of any value: they only move to out_tokens, which nobody reads."""
    batch = correct_len.shape[0]
    return correct_len.new_empty(batch, gamma, dtype=torch.int64), correct_len.new_empty(batch, dtype=torch.int64)


def _uncut(correct_len: Tensor, gamma: int) -> Tensor:
    """Verify lengths that cut nothing."""
    return torch.full_like(correct_len, gamma + 1, dtype=torch.int32)


def _rules(cfg: Any) -> dict[str, Any]:
    eps = max(cfg.survival_eps, _MIN_EPS)  # a survival below has no weight in a plan
    widest = cfg.resolved_max_verify_len()
    return {"min_verify_len": cfg.min_verify_len, "max_verify_len": widest, "survival_eps": eps}


def _fill(compact: Tensor, fill_value: float) -> int | float:
    return float(fill_value) if compact.dtype.is_floating_point else int(fill_value)


def _table(sps_table: Any) -> FloorTable | AdditiveTable:
    """SGLang's table as ours: it has the same fields. The original is kept, so that its id stays its own."""
    known = _TABLES.get(id(sps_table))
    if known is None:
        kind = AdditiveTable if hasattr(sps_table, "bias_seconds") else FloorTable
        table: FloorTable | AdditiveTable = kind(**{name: getattr(sps_table, name) for name in kind.__struct_fields__})
        if len(_TABLES) >= _MAX_TABLES:
            _TABLES.clear()
        known = _TABLES[id(sps_table)] = (sps_table, table)
    return known[1]


_TABLES: dict[int, tuple[Any, FloorTable | AdditiveTable]] = {}
_MAX_TABLES = 16  # a server has one, and one more whenever it profiles

# Where each one goes: a class whose `execute` SGLang calls, or functions by name.
_CLASSES: dict[str, dict[str, Callable[..., Any]]] = {
    f"{_OPS}.ragged_verify_kernels": {"PaddedToBucket": padded_to_bucket, "BuildQoIndptr": build_qo_indptr},
    f"{_OPS}.dspark.dspark_schedule": {"ScheduleVerifyLensTopk": schedule_verify_lens},
    f"{_OPS}.dspark.dspark_verify_window": {
        "ScatterCompactToStrided": scatter_compact_to_strided,
        "BuildOutTokens": build_out_tokens,
    },
    f"{_OPS}.dspark.dspark_accept": {"CapCorrectLen": cap_correct_len, "FinalizeAcceptLens": finalize_accept_lens},
}
_FUNCTIONS: dict[str, dict[str, Callable[..., Any]]] = {
    _PLANNER: {"compute_verify_token_budget": compute_verify_token_budget},
    f"{_OPS}.dspark.dspark_verify_window": {
        "compact_row_index": compact_row_index,
        "compact_row_index_triton": compact_row_index,
        "compact_verify_ids": compact_verify_ids,
        "compact_verify_ids_triton": compact_verify_ids,
        "scatter_compact_to_strided_into": scatter_compact_to_strided_into,
    },
}
_classes: list[tuple[Any, Any]] = []  # a class, and the `execute` that it had
_functions: list[tuple[str, Any, Any]] = []  # a name, SGLang's function, and ours


def enable(gamma: int) -> None:
    """Route SGLang's DSpark operators to this package, for a server whose draft has γ tokens.

    Call it after SGLang's modules are imported and before a graph is captured, in each process that runs a model.
    Raises ImportError if SGLang is not installed or has not all of these operators, RuntimeError if it is on already.
    """
    _checks.integer("gamma", gamma, 1, _checks.MAX_VERIFY_ROWS)
    if _classes:
        raise RuntimeError("dspark_ops is on already: call disable() first")
    # All are found before the first is replaced: a version of SGLang without one of them stays as it is.
    classes = [(found, _for_gamma(ours, gamma)) for found, _, ours in _find(_CLASSES)]
    functions = [(name, found, _for_gamma(ours, gamma)) for found, name, ours in _find(_FUNCTIONS)]
    for owner, ours in classes:
        _classes.append((owner, vars(owner)["execute"]))
        owner.execute = staticmethod(ours)
    _functions.extend(functions)
    _replace(functions)


def disable() -> None:
    """Give SGLang its own operators back, also in modules that were imported since `enable`."""
    while _classes:
        owner, original = _classes.pop()
        owner.execute = original
    _replace([(name, ours, original) for name, original, ours in _functions])
    _functions.clear()
    _TABLES.clear()


@contextmanager
def enabled(gamma: int) -> Iterator[None]:
    """`enable` for a `with` block."""
    enable(gamma)
    try:
        yield
    finally:
        disable()


def _find(wanted: dict[str, dict[str, Callable[..., Any]]]) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    for module_name, names in wanted.items():
        module = importlib.import_module(module_name)
        for name, ours in names.items():
            if name not in vars(module):
                raise ImportError(f"{module_name} has no {name}: dspark_ops knows SGLang 0.5.23")
            yield vars(module)[name], name, ours


def _for_gamma(ours: Callable[..., Any], gamma: int) -> Callable[..., Any]:
    """Ours for a draft of γ tokens: filled in where SGLang does not pass it, compared where it does."""
    if ours in (cap_correct_len, finalize_accept_lens):
        return partial(ours, gamma=gamma)

    def checked(**named: Any) -> Any:
        given = named["cfg"].gamma if "cfg" in named else named.get("gamma", gamma)
        if given != gamma:
            raise ValueError(f"gamma: expected {gamma}, as in enable(gamma={gamma}), got {given}")
        return ours(**named)

    return checked


def _replace(functions: list[tuple[str, Any, Any]]) -> None:
    """Old by new, in the module of each function and in those that imported it by name."""
    for module in [m for key, m in sys.modules.items() if key.partition(".")[0] == "sglang"]:
        for name, old, new in functions:
            if vars(module).get(name) is old:
                setattr(module, name, new)
