"""One checker per golden file: it takes a case (plain data) and raises `Mismatch` at the first difference.

The cases come from another implementation; where its conventions differ from ours, the checker translates.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import tiers as tier_rules
from .calibration import Samples, fit_sts
from .cost import AdditiveTable, FloorTable
from .cost.cells import CostCells
from .cost.fit import fit_additive, fit_floor, row_bin
from .cost.fit_report import Quality
from .ops.finalize_accept import finalize_accept as run_finalize_accept
from .ops.pad_to_bucket import capture_lens, pad_to_bucket
from .ops.plan_budget import plan_budget as run_plan_budget
from .ops.prefix_survival import prefix_survival
from .ops.ragged_layout import ragged_layout as run_ragged_layout
from .ops.scatter_to_strided import scatter_to_strided
from .ops.schedule_verify_lens import schedule_verify_lens as run_schedule_verify_lens
from .planner import Planner
from .testing import Mismatch

Case = dict[str, Any]
CHECKS: dict[str, Callable[[Case, str], None]] = {}


def _checker(check: Callable[[Case, str], None]) -> Callable[[Case, str], None]:
    """Register the checker of the golden file of the same name."""
    CHECKS[check.__name__] = check
    return check


def expect(name: str, got: Tensor | None, want: Any) -> None:
    """Raise Mismatch unless `got` has the shape and exactly the values of the nested list `want`."""
    if got is None:
        raise Mismatch(f"{name} was not returned")
    values, wanted = got.cpu(), torch.tensor(want, dtype=got.dtype)
    if values.shape != wanted.shape:
        raise Mismatch(f"{name} has shape {list(values.shape)}, expected {list(wanted.shape)}")
    differs = values != wanted
    if differs.any():
        at = tuple(int(i) for i in differs.nonzero()[0])
        raise Mismatch(f"{name}{list(at)} is {values[at].item()}, expected {wanted[at].item()}")


def close(name: str, got: float, want: float, relative: float, absolute: float = 0.0) -> None:
    """Raise Mismatch unless the numbers agree within a relative error, or within an absolute one."""
    if not abs(got - want) <= max(relative * abs(want), absolute):
        raise Mismatch(f"{name} is {got}, expected {want} within {relative:g}")


def _floats(values: Any, device: str) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, device=device)


def _int32(values: Any, device: str) -> Tensor:
    return torch.tensor(values, dtype=torch.int32, device=device)


def _int64(values: Any, device: str) -> Tensor:
    return torch.tensor(values, dtype=torch.int64, device=device)


@_checker
def schedule_verify_lens(case: Case, device: str) -> None:
    """Survival from confidence, then the lengths of a given budget."""
    survival = prefix_survival(_floats(case["confidence"], device))
    # Here a product below 2^-100 is 0.
    expect("survival", survival, [[s if s >= 2.0**-100 else 0.0 for s in row] for row in case["survival"]])
    schedule = run_schedule_verify_lens(survival, case["budget"])
    expect("verify_lens", schedule.verify_lens, case["verify_lens"])
    expect("stats[1]", schedule.stats[1], sum(case["verify_lens"]))


@_checker
def plan_budget(case: Case, device: str) -> None:
    """The best budget under a floor or an additive cost table, and what it predicts."""
    kind = FloorTable if "sample_steps_per_sec" in case["table"] else AdditiveTable
    cost = kind.from_json(json.dumps(case["table"]))
    stats = run_plan_budget(_floats(case["survival"], device), cost, search="global")
    expect("budget", stats[0], case["budget"])
    tau, step_ns = int(stats[3]) / 2**43, int(stats[4])
    close("tau", tau, case["predicted_tau"], 1e-5)
    # Ours is whole nanoseconds, theirs is not.
    close("step seconds", step_ns * 1e-9, case["predicted_step_seconds"], 1e-6)
    close("tokens per second", tau / (step_ns * 1e-9), case["predicted_theta"], 2e-5)


@_checker
def budget_planner(case: Case, device: str) -> None:
    """Budgets over time: confidences that come so many observations late, slots that change hands."""
    kind = FloorTable if "sample_steps_per_sec" in case["table"] else AdditiveTable
    cost = kind.from_json(json.dumps(case["table"]))
    lag = case["carry_steps"]
    planner = Planner(cost, gamma=case["gamma"], slots=case["pool_size"], lag=lag, search="global", bypass=False)
    for i, step in enumerate(case["steps"]):
        slots, generation = _int64(step["slots"], "cpu"), _int64(step["generation"], "cpu")
        current = _int64(step["current_generation"], "cpu")
        seen = (slots, _floats(step["confidence"], "cpu"), generation)
        if lag == 0:
            planner.observe(*seen)
        decision = planner.decide(slots, generation=current)
        if lag > 0:
            planner.observe(*seen)
        if decision.budget != step["budget"]:
            raise Mismatch(f"steps[{i}].budget is {decision.budget}, expected {step['budget']}")


@_checker
def tiers(case: Case, device: str) -> None:
    """Rows of a plan, the budget that fills a tier, the ranks' common tier, rounding up to a captured one."""
    requests = (case["num_reqs"], case["width"])
    least = case["min_verify_len"]
    found = {
        "local_tier_rows": tier_rules.local_tier_rows(*requests, case["budget"], least),
        "fill_budget": tier_rules.fill_budget(case["tier"], *requests, least),
        "dp_tier_rows": tier_rules.agree_tier(case["dp_tiers"]),
        "round_up": tier_rules.round_up_tier(case["total"], case["grid"]),
    }
    for name, got in found.items():
        want = -1 if case[name] is None else case[name]  # null, all fall back, is -1 here
        if got != want:
            raise Mismatch(f"{name} is {got}, expected {want}")


@_checker
def ragged_layout(case: Case, device: str) -> None:
    """Offsets and row maps, verify ids, bucket padding, and the way back to a fixed stride."""
    lens = _int32(case["verify_lens"], device)
    batch, rows, width = len(case["verify_lens"]), case["rows"], case["width"]
    prefix, root = _int64(case["prefix_lens"], device), _int64(case["root_tokens"], device)
    layout = run_ragged_layout(
        lens, rows, prefix=prefix, root_tokens=root, draft_tokens=_int64(case["draft_tokens"], device)
    )
    expect("cu_seqlens", layout.cu_seqlens, case["cu_seqlens"])
    # A padding row's request is -1 here, B in the case.
    request = [r if r < batch else -1 for r in case["row_request"]]
    expect("row_request", layout.row_request, request)
    expect("row_offset", layout.row_offset, case["row_offset"])
    expect("verify_ids", layout.verify_ids, case["verify_ids"])
    pairs = zip(request, case["row_offset"], strict=True)
    expect("position", layout.position, [case["prefix_lens"][r] + k if r >= 0 else 0 for r, k in pairs])
    strided = scatter_to_strided(_floats(case["compact"], device), layout.cu_seqlens, width, case["fill"])
    expect("strided", strided, case["strided"])
    for name, cap in (("padded", None), ("padded_capped", width)):
        expect(name, pad_to_bucket(lens, rows, case["padded_bs"], cap=cap).padded, case[name])


@_checker
def accept(case: Case, device: str) -> None:
    """The accepted length cut at the verify length, and what is committed."""
    accepted = run_finalize_accept(
        _int32(case["raw_correct_len"], device),
        _int64(case["draft_tokens"], device),
        _int32(case["verify_lens"], device),
        _int64(case["prefix_lens"], device),
        bonus=_int64(case["bonus"], device),
    )
    expect("correct_len", accepted.correct_len, case["correct_len"])
    expect("trimmed", accepted.trimmed, case["trimmed"])
    expect("commit_len", accepted.commit_len, case["commit_lens"])
    expect("new_seq_len", accepted.new_seq_len, case["new_seq_lens"])
    expect("out_tokens", accepted.out_tokens, case["out_tokens"])


@_checker
def capture_layout(case: Case, device: str) -> None:
    """Verify lengths with which a graph of so many rows and slots is captured."""
    lens = capture_lens(case["rows"], case["slots"], case["width"], device)
    expect("verify_lens", lens, case["verify_lens"])


@_checker
def sts_fit(case: Case, device: str) -> None:
    """Sequential temperature scaling: the same temperatures and the same calibration errors."""
    mask = _floats(case["prefix_mask"], device)
    samples = Samples(_floats(case["logits"], device), mask.sum(1).long(), "greedy")
    fitted = fit_sts(samples, _floats(case["grid"], device), case["num_bins"])
    for name in ("temperatures", "ece_before", "ece_after"):
        got, want = getattr(fitted, name), case[name]
        if len(got) != len(want):
            raise Mismatch(f"{name} has {len(got)} values, expected {len(want)}")
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            # The order of a float64 sum is the machine's choice; a temperature is one of the grid.
            close(f"{name}[{k}]", a, b, 0.0 if name == "temperatures" else 1e-9)


@_checker
def cost_fit(case: Case, device: str) -> None:
    """The additive fit of measured cells and its residuals, and the table by rows only."""
    cells, bin_rows = CostCells.from_list(case["cells"]), case["mbin_w"]
    table = fit_additive(cells, bin_rows)
    alpha = dict(zip(table.bs_probes, table.alpha_seconds, strict=True))
    theta = dict(zip(table.m_probes, table.theta_seconds, strict=True))
    close("bias", table.bias_seconds, case["bias"], 1e-9)
    for name, got in (("alpha", alpha), ("theta", theta)):
        if list(map(str, got)) != list(case[name]):
            raise Mismatch(f"{name} has probes {list(got)}, expected {list(case[name])}")
        for probe, seconds in got.items():
            close(f"{name}[{probe}]", seconds, case[name][str(probe)], 1e-9, 1e-12)
    measured = [cell.seconds for cell in cells.samples]
    fitted = [table.bias_seconds + alpha[cell.num_reqs] + theta[row_bin(cell.rows, bin_rows)] for cell in cells.samples]
    quality = Quality.of(measured, fitted)
    close("rms_ms", quality.rms_seconds * 1e3, case["rms_ms"], 1e-9)
    close("r2", quality.r2 or 0.0, case["r2"], 1e-9)
    for i, (seconds, fit) in enumerate(zip(measured, fitted, strict=True)):
        percent = abs(seconds - fit) / seconds * 100
        close(f"relative_error_percent[{i}]", percent, case["relative_error_percent"][i], 1e-9, 1e-9)
    by_rows = json.loads(fit_floor(cells).to_json())
    for field, want in case["sps_table"].items():
        if by_rows[field] != want:
            raise Mismatch(f"sps_table.{field} is {by_rows[field]}, expected {want}")
