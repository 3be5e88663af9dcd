"""The planner at its edges: bounds on rows, buffers that are used again, ranks that fail, memory that must not grow."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from planner_cases import FLAT, GAMMA, STEEP, rows_of, slots_of, step, table

import dspark_ops
from dspark_ops import Planner, RanksDiffer
from dspark_ops.planner import PlanningCost, _ranks


@pytest.mark.parametrize("why", ["verify_all", "flat", "bypass", "forced"])
def test_max_rows_holds_where_nothing_is_planned(why: str) -> None:
    """Eight requests of four rows in 16: something must be left out, so `allocate` must say what."""
    cost = {"verify_all": None, "flat": FLAT, "bypass": table((1, 1.0), (17, 9.0))}.get(why, STEEP)
    if why == "flat":
        with pytest.warns(UserWarning, match="the table is flat"):
            planner = Planner(cost, gamma=GAMMA, slots=8, max_rows=16)
    else:
        planner = Planner(cost, gamma=GAMMA, slots=8, max_rows=16, graphs=[(16, 8), (32, 8)])
    if why == "forced":
        planner.force(1.0)
    decision, plan = step(planner, torch.arange(8), rows_of(8, 0.9, 0.5, 0.2))
    assert (decision.reason, decision.rows, decision.budget, decision.full_rows) == (why, 16, 8, 32)
    assert decision.trims and plan is not None and plan.verify_lens.tolist() == [2] * 8
    assert planner.fall_back(torch.arange(8)).trims is False, "the uniform layout knows no bound"


def test_lag_0_with_the_joint_rule_is_a_global_search() -> None:
    """It takes the best of all tiers whatever `search` says: with current confidences that biases sampling."""
    options: dict[str, Any] = {"gamma": GAMMA, "slots": 8, "graphs": [(8, 8), (32, 8)], "rule": "joint"}
    with pytest.raises(ValueError, match="rule: 'joint' searches globally"):
        Planner(STEEP, lag=0, search="first_drop", **options)
    Planner(STEEP, lag=0, search="global", **options)
    Planner(STEEP, lag=1, search="first_drop", **options)


def test_the_callers_buffers_may_be_used_again() -> None:
    """A runtime that prepares the next step in the same buffers must not put confidences under other requests."""
    planner = Planner(STEEP, gamma=GAMMA, slots=8, bypass=False)
    slots, generation = slots_of(1, 2), slots_of(5, 6)
    decision = planner.decide(slots, generation=generation)
    slots.copy_(slots_of(3, 4))
    generation.fill_(9)
    planner.allocate(decision, rows_of(2, 0.5, 0.5, 0.5))
    assert planner._ring.read().generation.tolist() == [0, 5, 6, 0, 0, 0, 0, 0]


def test_broadcast_covers_lag_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """The current confidences rank, whatever set the budget: they too must come from the first rank."""
    planner = Planner(STEEP, gamma=GAMMA, slots=8, lag=0, search="first_drop", bypass=False)
    shared: list[torch.Tensor] = []
    monkeypatch.setattr(planner._ranks, "share", shared.append)
    slots, logits = torch.arange(4), torch.zeros(4, GAMMA)
    planner.observe(slots, logits.sigmoid())
    planner.allocate(planner.decide(slots), logits=logits)
    assert len(shared) == 2 and shared[1] is logits


def test_lag_0_wants_each_step_observed_after_a_fallback_too() -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=4, lag=0, search="first_drop")
    planner.observe(slots_of(1), rows_of(1, 0.5, 0.5, 0.5))
    planner.fall_back(slots_of(1))
    with pytest.raises(ValueError, match="lag: 0 plans from this step's confidences"):
        planner.decide(slots_of(1))


def test_every_group_is_compared_before_a_set_up_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a grid a rank may differ within one of its groups only: those of the other still wait for it there."""
    met = []

    def different(value: int, group: str) -> None:
        met.append(group)
        raise RanksDiffer(f"setup: {group}")

    monkeypatch.setattr(_ranks, "require_same_setup", different)
    with pytest.raises(RanksDiffer, match="setup: dp"):
        _ranks.Ranks("dp", "tp", "check", 1)
    assert met == ["dp", "tp"]


def test_what_is_kept_of_a_table_does_not_grow_with_the_caps() -> None:
    cost = PlanningCost(dspark_ops.OnlineCost(STEEP, tiers=[8, 16, 32]), GAMMA + 1)
    for full in range(8, 33):
        span = cost.span(8, 8, full, None)
        row = cost.row(8)
        assert (span.least_ns, span.full_ns) == (int(row[8 : full + 1].min()), int(row[full]))
    assert len(cost._spans) == 1


def test_a_context_changes_what_is_kept_of_a_table() -> None:
    cost = PlanningCost(dspark_ops.ContextTable(STEEP, seconds_per_token=1e-6, context_per_request=0), GAMMA + 1)
    spans = [cost.span(8, 8, 32, tokens) for tokens in (0, 500, 500, 0)]
    assert [span.full_ns - spans[0].full_ns for span in spans] == [0, 500_000, 500_000, 0]
    assert [span.full_ns - span.least_ns for span in spans] == [1_200_000] * 4


@pytest.mark.parametrize("slots", [-1, [0, 8], slots_of(-3)])
def test_admit_refuses_what_is_no_slot(slots: Any) -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=8)
    with pytest.raises(ValueError, match=r"slots: expected values in \[0, 8\)"):
        planner.admit(slots)
    assert planner.generation.tolist() == [1] * 8


def test_tensor_parallel_ranks_hear_of_a_refused_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of one data-parallel group differ, those of the next do not: the latter would wait for a comparison
    that never comes."""
    planner = Planner(STEEP, gamma=GAMMA, slots=8, graphs=[(8, 8), (32, 8)], rule="joint")
    marks: list[int] = []
    monkeypatch.setattr(planner._ranks, "compare", marks.append)
    mine = planner.propose(torch.arange(8))
    theirs = [mine[0], mine[1] + 1, (mine[1] + 1) ** 2, *mine[3:]]
    with pytest.raises(RanksDiffer, match="cost: the ranks' tables have come to differ"):
        planner.conclude([a + b for a, b in zip(mine, theirs, strict=True)])
    assert marks == [0]
