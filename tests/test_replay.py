"""The replay: a hand-computed answer, invariants on a real trace, and planted violations that it must catch."""

from __future__ import annotations

from dataclasses import replace as change
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_trace
import torch

import dspark_ops.replay.demo as module
from dspark_ops.cost.cells import CostCells
from dspark_ops.replay import Options, Violation, replay, step_rows
from dspark_ops.trace import Trace

EXAMPLES = Path(__file__).parents[1] / "examples/traces"
# T(M) = 10 + M microseconds.
LINEAR = CostCells.from_list([{"bs": 2, "M": m, "T": (10 + m) * 1e-6} for m in (1, 64)])


def tiny(requests: list[list[int]], logit: float = 8.0) -> Trace:
    return Trace(**tiny_trace.arrays(requests, logit=logit))


@pytest.fixture(scope="module")
def example() -> tuple[Trace, CostCells]:
    return Trace.load(EXAMPLES / "greedy_small.npz"), CostCells.load(EXAMPLES / "cost_cells.json")


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {policy["policy"]: policy for policy in report["policies"]}


def test_slots_take_the_next_request_and_stop_when_none_is_left() -> None:
    trace = tiny([[2, 0], [1], [0, 2, 1], [0]])
    assert step_rows(trace, 2).tolist() == [[0, 2], [1, 3], [6, 4]]
    assert step_rows(trace, 2, max_steps=1).tolist() == [[0, 2]]
    assert step_rows(trace, 1).ravel().tolist() == list(range(7))
    with pytest.raises(ValueError, match="batch: expected at most the 4 requests"):
        step_rows(trace, 5)


def test_hand_computed_answer() -> None:
    """Both requests miss everything, then hit everything, and the confidences know.

    Step 1 has no history, so the budget is everything (16 us); the second drafts are below eps, 4 rows are verified.
    Step 2 has a hopeless history: 1 row each (12 us), though all drafts would be right.
    """
    report = replay(tiny([[0, 2], [0, 2]]), LINEAR, Options(batch=2))
    figures = by_name(report)
    keys = ("rows_verified", "tokens_committed", "accept_length", "actual_tau")
    assert [figures["static"][k] for k in keys] == [12, 8, 2.0, 4.0]
    assert [figures["cap-accept"][k] for k in keys] == [12, 4, 1.0, 2.0]
    assert [figures["compact"][k] for k in keys] == [6, 4, 1.0, 2.0]
    assert [figures[p]["seconds"] for p in figures] == pytest.approx([32e-6, 32e-6, 26e-6])
    assert figures["compact"]["ratio_to_static"] == pytest.approx((4 / 26) / (8 / 32))
    hit = 1 / (1 + np.exp(-8.0))
    assert figures["compact"]["predicted_tau"] == pytest.approx((4 + 2 * (1 - hit)) / 2, rel=1e-6)
    assert figures["static"]["predicted_tau"] == pytest.approx(
        (4 + 2 * (1 - hit) + 2 * (1 - hit) ** 2 + 2 * hit + 2 * hit**2) / 2, rel=1e-6
    )
    assert report["best_fixed"] == {
        "verify_len": 3,
        "tokens_per_second": pytest.approx(8 / 32e-6),
        "ratio_to_static": pytest.approx(1.0),
    }
    assert (report["steps"], report["recorded_steps_used"]) == (2, 4)


def test_first_drop_plans_from_the_current_step() -> None:
    report = replay(tiny([[0, 2], [0, 2]]), LINEAR, Options(batch=2, search="first_drop"))
    figures = by_name(report)
    assert figures["compact"]["rows_verified"] == 2 + 6
    assert figures["compact"]["tokens_committed"] == figures["static"]["tokens_committed"] == 8


def test_a_request_in_a_reused_slot_does_not_inherit_history() -> None:
    report = replay(tiny([[0, 0], [2], [2], [0]]), LINEAR, Options(batch=1))
    # Were the history of the request before it used, the third request (right, after a right one) and the second
    # (right, after a wrong one) would differ: both are new, so both are verified in full.
    assert by_name(report)["compact"]["tokens_committed"] == by_name(report)["static"]["tokens_committed"]


def test_temperature_flattens_the_plan() -> None:
    hot, cold = (
        by_name(replay(tiny([[0, 2], [0, 2]]), LINEAR, Options(batch=2, temperature=t)))["compact"]
        for t in (100.0, 1.0)
    )
    assert hot["rows_verified"] > cold["rows_verified"]


@pytest.mark.parametrize("options", [Options(batch=4), Options(batch=16, head="z"), Options(32, search="first_drop")])
def test_invariants_on_the_real_trace(example: tuple[Trace, CostCells], options: Options) -> None:
    trace, cells = example
    report = replay(trace, cells, change(options, max_steps=30))
    figures = by_name(report)
    static, capped, compact = (figures[p] for p in ("static", "cap-accept", "compact"))
    requests = 30 * options.batch
    assert static["rows_verified"] == capped["rows_verified"] == requests * 8
    assert requests <= compact["rows_verified"] < static["rows_verified"]
    assert requests <= compact["tokens_committed"] == capped["tokens_committed"] <= static["tokens_committed"]
    assert compact["seconds"] < static["seconds"] == capped["seconds"]
    assert capped["ratio_to_static"] <= 1.0 == static["ratio_to_static"]
    rows = step_rows(trace, options.batch, 30)
    assert static["tokens_committed"] == int((trace.correct_len[rows].astype(int) + 1).sum())


def test_the_same_replay_gives_the_same_report(example: tuple[Trace, CostCells]) -> None:
    assert replay(*example, Options(max_steps=20)) == replay(*example, Options(max_steps=20))


def test_catches_a_trace_whose_tokens_do_not_give_its_lengths() -> None:
    trace = tiny([[0, 2], [1, 2]])
    trace.target_argmax[2, 0] += 1
    with pytest.raises(Violation, match=r"static and the trace differ in correct_len: \[0, 0\] and \[0, 1\]"):
        replay(trace, LINEAR, Options(batch=2))


def test_catches_a_bonus_that_the_target_did_not_give() -> None:
    trace = tiny([[0, 2], [1, 2]])
    trace.bonus_token[2] += 1
    with pytest.raises(Violation, match=r"static and the trace differ in bonus: \[105, 126\] and \[105, 127\]"):
        replay(trace, LINEAR, Options(batch=2))


@pytest.mark.parametrize("output", ["bonus", "commit_len", "new_seq_len"])
def test_catches_static_that_commits_something_else(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    honest = module.accept_greedy

    def wrong(*args: Any, **kwargs: Any) -> Any:
        accepted = honest(*args, **kwargs)
        getattr(accepted, output)[1] += 1
        return accepted

    monkeypatch.setattr(module, "accept_greedy", wrong)
    with pytest.raises(Violation, match=f"static and the trace differ in {output}"):
        replay(tiny([[0, 2], [1, 2]]), LINEAR, Options(batch=2))


@pytest.mark.parametrize(("column", "committed"), [(0, True), (1, True), (2, False)])
def test_compares_the_committed_tokens_and_no_others(
    monkeypatch: pytest.MonkeyPatch, column: int, committed: bool
) -> None:
    honest = module.accept_greedy

    def wrong(*args: Any, **kwargs: Any) -> Any:
        accepted = honest(*args, **kwargs)
        accepted.out_tokens[1, column] += 1
        return accepted

    monkeypatch.setattr(module, "accept_greedy", wrong)
    trace = tiny([[0, 2], [1, 2]])
    step = next(module.steps_of(trace, step_rows(trace, 2), "z"))
    if committed:
        with pytest.raises(Violation, match="static and the trace differ in committed tokens"):
            module.accept_static(step)
    else:
        module.accept_static(step)


def test_catches_compact_that_commits_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = module.accept_greedy

    def wrong(*args: Any, cu_seqlens: torch.Tensor | None = None, **kwargs: Any) -> Any:
        accepted = honest(*args, cu_seqlens=cu_seqlens, **kwargs)
        if cu_seqlens is not None:
            accepted.out_tokens[0, 0] += 1
        return accepted

    monkeypatch.setattr(module, "accept_greedy", wrong)
    with pytest.raises(Violation, match="compact and cap-accept differ in out_tokens"):
        replay(tiny([[0, 2], [1, 2]]), LINEAR, Options(batch=2))


@pytest.mark.parametrize("output", ["cu_seqlens", "verify_ids", "position"])
def test_catches_a_wrong_layout(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    honest = module.ragged_layout

    def wrong(*args: Any, **kwargs: Any) -> Any:
        layout = honest(*args, **kwargs)
        getattr(layout, output)[-1] += 1
        return layout

    monkeypatch.setattr(module, "ragged_layout", wrong)
    with pytest.raises(Violation, match=f"the layout and the .* differ in {output}"):
        replay(tiny([[0, 2], [1, 2]]), LINEAR, Options(batch=2))


def test_refuses_a_sampled_trace() -> None:
    trace = tiny([[0, 2], [1, 2]])
    trace.argmax_prefix_len[0] = 2
    with pytest.raises(ValueError, match="expected a greedy trace"):
        replay(trace, LINEAR, Options(batch=2))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"batch": 0}, "batch: expected at least 1"),
        ({"head": "y"}, "head: expected one of z_refit, z, got 'y'"),
        ({"search": "global"}, "search: expected one of history, first_drop"),
        ({"temperature": 0.0}, "temperature: expected a number"),
        ({"temperature": float("nan")}, "temperature: expected a number"),
        ({"max_steps": 0}, "steps: expected at least 1"),
    ],
)
def test_refuses_bad_options(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**given)
