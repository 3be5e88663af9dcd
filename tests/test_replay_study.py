"""The complete replay: timelines, budgets against hand-made and independent answers, the ranks' rules."""

from __future__ import annotations

from dataclasses import replace as change
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_trace
import torch
from planner_cases import table as cost_table

from dspark_ops.calibration import AffineCalibration, identity
from dspark_ops.calibration.tables import OffsetRule
from dspark_ops.cost.cells import CostCells
from dspark_ops.replay import Options as DemoOptions
from dspark_ops.replay import demo, step_rows
from dspark_ops.replay import replay as demo_replay
from dspark_ops.replay.budgets import Fixed, Oracle, Planned, Threshold
from dspark_ops.replay.ranks import MIXES, RULES, RankLoad, compare_rules
from dspark_ops.replay.report import Options, report, theta_curve
from dspark_ops.replay.scenes import measured, scenes
from dspark_ops.replay.study import CAPPED, COMPACT, STATIC, Recorded, Run, play, study, table
from dspark_ops.replay.timeline import DRIFT, Load, Moment, order_requests, timeline
from dspark_ops.trace import Trace

EXAMPLES = Path(__file__).parents[1] / "examples/traces"
# T(M) = 10 + M ms.
LINEAR = cost_table(*((rows, 10.0 + rows) for rows in range(1, 65)))


def tiny(requests: list[list[int]], logit: float = 8.0) -> Trace:
    return Trace(**tiny_trace.arrays(requests, logit=logit))


@pytest.fixture(scope="module")
def example() -> tuple[Trace, CostCells]:
    return Trace.load(EXAMPLES / "greedy_small.npz"), CostCells.load(EXAMPLES / "cost_cells.json")


def in_order(trace: Trace, batch: int, max_steps: int | None = None) -> list[Moment]:
    """The timeline of the demo: every slot busy, requests in the order of the trace."""
    return [
        Moment(torch.arange(batch), torch.from_numpy(rows), torch.from_numpy(np.flatnonzero(trace.step[rows] == 0)))
        for rows in step_rows(trace, batch, max_steps)
    ]


def run(budget: Any, policy: str, requests: list[list[int]], batch: int) -> Run:
    trace = tiny(requests)
    found = Run(policy, "")
    play(Recorded.of(trace, "z"), in_order(trace, batch), budget, [found], LINEAR)
    return found


@pytest.mark.parametrize(
    ("policy", "drafts", "rows", "proposed", "accepted", "milliseconds"),
    [
        (STATIC, 2, 12, 8, 4, 2 * 16),
        (CAPPED, 1, 12, 4, 2, 2 * 16),
        (COMPACT, 1, 8, 4, 2, 2 * 14),
        (COMPACT, 0, 4, 0, 0, 2 * 12),
    ],
)
def test_fixed_lengths_by_hand(
    policy: str, drafts: int, rows: int, proposed: int, accepted: int, milliseconds: float
) -> None:
    """Two requests that miss everything, then hit everything."""
    found = run(Fixed(drafts), policy, [[0, 2], [0, 2]], 2)
    assert (found.rows, found.proposed, found.accepted, found.tokens) == (rows, proposed, accepted, 4 + accepted)
    assert found.seconds == pytest.approx(milliseconds * 1e-3)
    figures = found.summary()
    assert figures["accept_length"] == (4 + accepted) / 4
    assert figures["acceptance_rate"] == (accepted / proposed if proposed else None)
    assert figures["tpot_ms"] == pytest.approx(2 * milliseconds / (4 + accepted))
    assert figures["tokens_per_second"] == pytest.approx((4 + accepted) / (milliseconds * 1e-3))


def test_threshold_and_oracle_by_hand() -> None:
    """Survival is about 1 up to the outcome and 0 past it: a threshold sees it, the oracle knows it."""
    for budget in (Threshold(0.5), Oracle(LINEAR)):
        found = run(budget, COMPACT, [[0, 2], [1, 2]], 2)
        assert (found.rows, found.proposed, found.accepted) == (2 + 1 + 6, 5, 5)
    assert run(Oracle(cost_table((1, 1.0), (3, 100.0))), COMPACT, [[0, 2], [1, 2]], 2).accepted == 0


@pytest.mark.parametrize("batch", [8, 16])
def test_planned_over_time_is_what_the_demo_plans(example: tuple[Trace, CostCells], batch: int) -> None:
    """Two ways to one answer: the planner's ring and generations, and history gathered from the trace."""
    trace, cells = example
    planned = Run(COMPACT, "")
    budget = Planned(measured(cells).truth, batch, trace.gamma)
    moments = in_order(trace, batch, 60)
    play(Recorded.of(trace, "z_refit"), moments, budget, [planned], measured(cells).truth)
    other = demo_replay(trace, cells, DemoOptions(batch=batch, max_steps=60))["policies"][2]
    assert other["policy"] == demo.Totals(COMPACT).policy
    assert (planned.rows, planned.tokens) == (other["rows_verified"], other["tokens_committed"])
    assert planned.seconds == pytest.approx(other["seconds"], rel=1e-6)
    assert sum(planned.predicted) / 60 == pytest.approx(other["predicted_tau"], rel=1e-6)


def test_one_plan_commits_alike_under_cap_accept_and_compact(example: tuple[Trace, CostCells]) -> None:
    trace, cells = example
    recorded, moments = Recorded.of(trace, "z_refit"), timeline(trace, Load(16, max_steps=40))
    for scene in scenes(cells, 8):
        lines = table(study(recorded, moments, 16, scene, greedy=True))
        capped, compact = (
            next(x for x in lines if x["budget"] == "tier, lag 1" and x["policy"] == p) for p in (CAPPED, COMPACT)
        )
        assert {k: capped[k] for k in ("accepted", "proposed")} == {k: compact[k] for k in ("accepted", "proposed")}
        assert capped["rows"] == lines[0]["rows"] and capped["tokens_per_second"] <= lines[0]["tokens_per_second"]
        assert lines[0]["over_static"] == lines[1]["over_best_fixed"] == lines[-1]["over_oracle"] == 1.0
        assert max(x["over_oracle"] for x in lines) == 1.0, "nobody beats the outcome"
    assert not any(r.budget == "tier, lag 0" for r in study(recorded, moments[:3], 16, scene, greedy=False))


@pytest.mark.parametrize("gamma, acceptance", [(7, "sampled"), (6, "greedy")])
def test_a_calibration_for_something_else_is_refused(
    example: tuple[Trace, CostCells], gamma: int, acceptance: str
) -> None:
    trace, cells = example
    recorded, moments, scene = Recorded.of(trace, "z"), timeline(trace, Load(4, max_steps=2)), measured(cells)
    other = identity(gamma, acceptance)
    with pytest.raises(ValueError, match="calibration: expected one fitted"):
        study(recorded, moments, 4, scene, greedy=True, calibrations={"other": other})
    with pytest.raises(ValueError, match="calibration: expected one fitted"):
        compare_rules(trace, recorded, scene, [RankLoad(4)], 2, other)


def test_slots_are_handed_on_and_every_step_is_taken_once() -> None:
    trace = tiny([[2, 0], [1], [0, 2, 1], [0]])
    moments = timeline(trace, Load(2, arrivals=1.5, seed=3))
    taken = torch.cat([m.rows for m in moments]).tolist()
    assert sorted(taken) == list(range(7)), "arrivals end when all are served"
    assert sum(len(m.new) for m in moments) == 4
    for moment in moments:
        first = trace.step[moment.rows.numpy()] == 0
        assert moment.slots[torch.from_numpy(first)].tolist() == moment.new.tolist()
    sizes = {len(m.slots) for m in moments}
    assert sizes == {1, 2}, "the load varies"


def test_busy_slots_end_with_the_requests_and_cycle_begins_again() -> None:
    trace = tiny([[2, 0], [1, 1]])
    assert len(timeline(trace, Load(2))) == 2
    again = timeline(trace, Load(1, max_steps=9, cycle=True))
    assert [int(m.rows) for m in again[:4]] == [int(m.rows) for m in again[4:8]]
    with pytest.raises(ValueError, match="slots: expected at most the 2 requests"):
        timeline(trace, Load(3))


def test_drift_keeps_the_last_domain_for_the_end(example: tuple[Trace, CostCells]) -> None:
    trace = example[0]
    domain = trace.domain[trace.request_starts]
    coming = domain[order_requests(trace, Load(4, order=DRIFT))]
    assert coming[:50].max() < 2 == coming[50:].min()
    assert set(coming[:20]) == {0, 1}
    assert set(domain[order_requests(trace, Load(4))][:20]) == {0, 1, 2}


def test_offsets_learn_and_a_new_request_starts_at_0(example: tuple[Trace, CostCells]) -> None:
    trace, cells = example
    rule = OffsetRule(eta=0.5)
    learning = AffineCalibration(acceptance="greedy", scale=[1.0] * 7, bias=[-1.0] * 7, offset=rule)
    budget = Planned(measured(cells).truth, 8, 7, calibration=learning)
    recorded, moments = Recorded.of(trace, "z"), timeline(trace, Load(8, max_steps=70))
    assert sum(len(moment.new) for moment in moments[1:]) > 3
    for moment in moments:
        logits, correct = recorded.logits[moment.rows], recorded.correct_len[moment.rows]
        before = budget._offset.clone()
        lens = budget.lengths(moment, logits, correct).verify_lens
        started = before.clone()
        started[moment.new] = 0.0
        c = torch.sigmoid(logits - 1.0 + started[:, None])
        k = torch.arange(7)
        seen = (k < torch.minimum(correct + 1, lens - 1)[:, None]).float()
        change = 0.5 * (((k < correct[:, None]).float() - c) * seen).sum(1)
        # torch sums in another order, and its sigmoid differs by a few ulp.
        assert torch.allclose(budget._offset, (started + change).clamp(-4, 4), atol=1e-5)
    assert budget._offset.abs().max() > 0.1


def test_a_sampled_outcome_is_counted_as_it_was(example: tuple[Trace, CostCells]) -> None:
    trace = change(example[0], correct_len=np.zeros_like(example[0].correct_len))
    found = Run(STATIC, "")
    play(Recorded.of(trace, "z"), timeline(trace, Load(4, max_steps=5)), Fixed(7), [found], LINEAR)
    assert found.accepted == 0


def test_ranks_rules(example: tuple[Trace, CostCells]) -> None:
    trace, cells = example
    recorded, scene = Recorded.of(trace, "z_refit"), scenes(cells, 8)[2]
    loads = (RankLoad(16, (2,)), RankLoad(4), RankLoad(4, (0,)))
    lines = {line["rule"]: line for line in compare_rules(trace, recorded, scene, loads, 25)}
    assert tuple(lines) == RULES
    assert lines["all rows"]["rows"] == 25 * 24 * 8 and lines["all rows"]["mean_graph_rows"] == 128
    assert lines["maximum, filled"]["over_maximum"] == 1.0
    assert lines["maximum"]["mean_graph_rows"] == lines["maximum, filled"]["mean_graph_rows"]
    assert lines["maximum"]["tokens"] <= lines["maximum, filled"]["tokens"]
    assert lines["joint"]["expected_over_maximum"] > 1.0
    assert all(len(ranks) == 4 for ranks in MIXES.values())


def test_scenes_have_a_cliff_that_only_the_staircase_keeps(example: tuple[Trace, CostCells]) -> None:
    for scene in scenes(example[1], 8)[1:]:
        true, fitted = (cost.row(1024, num_reqs=32)[64:66] for cost in (scene.truth, scene.additive))
        assert true.diff() > 400_000 > fitted.diff()
        assert scene.graphs(32, 8) == [(rows, 32) for rows in (32, 40, 48, 56, 64, 96, 128, 160, 192, 224, 256)]


def test_theta_curve_marks_its_maximum() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(1)) * 2
    theta = theta_curve(logits, LINEAR)
    assert len(theta.budgets) == 13
    assert theta.chosen == int(np.argmax(theta.tokens_per_second))
    assert theta.tokens_per_second[0] == pytest.approx(4 / 14e-3)


def test_report_holds_its_fits_to_other_requests(example: tuple[Trace, CostCells]) -> None:
    options = Options(slots=(4,), rank_steps=2, max_steps=3, held_out=True)
    data, found = report(*example, options)
    assert len(data["tables"]) == 9 and data["requests"] == 38 and data["acceptance"] == "greedy"
    starts = example[0].request_starts
    for section in found:
        assert {"tier, lag 1, STS", "tier, lag 1, affine", "tier, lag 1, affine + offset"} <= {
            r.budget for r in section.runs
        }
    moments = timeline(example[0], Load(4), range(0, 75, 2))
    requests = {int(np.searchsorted(starts, int(row), side="right")) - 1 for m in moments for row in m.rows}
    assert all(r % 2 == 0 for r in requests)
    assert {part["calibration"] for part in data["ranks"]} == {"none", "STS", "affine", "affine + offset"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Load(0), "slots: expected at least 1"),
        (lambda: Load(1, arrivals=0.0), "arrivals: expected"),
        (lambda: Load(1, order="up"), "order: expected one of mixed, drift"),
        (lambda: Load(1, max_steps=0), "steps: expected at least 1"),
        (lambda: Load(1, cycle=True), "cycle: needs max_steps"),
        (lambda: Options(slots=()), "slots: expected at least one load"),
        (lambda: Options(head="y"), "head: expected one of"),
        (lambda: Options(rank_steps=-1), "rank_steps: expected"),
    ],
)
def test_refuses_bad_options(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
