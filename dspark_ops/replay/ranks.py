"""Data-parallel ranks with unequal loads: the maximum of local tiers against the joint tier, in one process.

Each rank has a `Planner` of its own; proposals are reduced here instead of by a collective. The ranks step together,
so every step takes the time of the agreed graph, whatever a rank does in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Literal

import torch

from ..calibration.samples import recorded_acceptance
from ..calibration.tables import Calibration
from ..planner import Decision, Planner
from ..trace import Trace
from .budgets import Planned
from .scenes import Scene
from .study import Recorded
from .timeline import Load, Moment, timeline

RULES = ("all rows", "best fixed graph", "maximum", "maximum, filled", "joint")


@dataclass(frozen=True)
class RankLoad:
    """One rank: its concurrent requests, and the domains that they come from (None: all)."""

    slots: int
    domains: tuple[int, ...] | None = None


# By name: requests of each rank, and where they come from. Domain 0 accepts much, the last one little.
MIXES = {
    "32, 16, 8, 4": (RankLoad(32, (0,)), RankLoad(16, (1,)), RankLoad(8, (2,)), RankLoad(4)),
    "32 hard, 16, 16, 16 easy": (RankLoad(32, (2,)), RankLoad(16, (0,)), RankLoad(16, (0,)), RankLoad(16, (1,))),
}


@dataclass
class Together:
    """Sums over all ranks under one rule."""

    rule: str
    tokens: int = 0
    expected: float = 0.0  # tokens, by the confidences of the steps themselves; NaN where a rank looked at none
    rows: int = 0
    seconds: float = 0.0
    steps: int = 0
    graph_rows: int = 0

    def summary(self) -> dict[str, Any]:
        """Plain figures."""
        return {
            "rule": self.rule,
            "steps": self.steps,
            "tokens": self.tokens,
            "rows": self.rows,
            "mean_graph_rows": self.graph_rows / self.steps,
            "tokens_per_second": self.tokens / self.seconds,
            "expected_per_second": None if isnan(self.expected) else self.expected / self.seconds,
        }


Steps = Sequence[Sequence[Moment]]  # by step, by rank


def _agree(planners: Sequence[Planner], moments: Sequence[Moment], joint: bool) -> list[Decision]:
    """What a collective would do: every rank's proposal, reduced, and every rank's decision from it."""
    proposals = [planner.propose(moment.slots) for planner, moment in zip(planners, moments, strict=True)]
    reduce: Callable[[Sequence[int]], int] = sum if joint else max
    reduced = [reduce(column) for column in zip(*proposals, strict=True)]
    return [planner.conclude(reduced) for planner in planners]


def _planned(
    recorded: Recorded,
    steps: Steps,
    loads: Sequence[RankLoad],
    scene: Scene,
    calibration: Calibration | None,
    rule: str,
    forced: int | None = None,
) -> Together:
    """One rule; `forced` graph rows stand for every rank instead of a plan."""
    slots, gamma = max(load.slots for load in loads), recorded.width - 1
    joint = rule == "joint"
    ranks = []
    for load in loads:
        budget = Planned(scene.truth, load.slots, gamma, calibration=calibration)
        chosen: Literal["joint", "maximum"] = "joint" if joint else "maximum"
        budget.planner = Planner(
            scene.truth, gamma=gamma, slots=load.slots, graphs=scene.graphs(slots, recorded.width), rule=chosen,
            fill_tier=rule != "maximum",
        )  # fmt: skip
        if forced is not None:
            budget.planner.force(max(0, forced - load.slots))
        ranks.append(budget)
    row = scene.truth.row(slots * recorded.width, num_reqs=slots)
    together = Together(rule)
    for moments in steps:
        for rank, moment in zip(ranks, moments, strict=True):
            rank.admit(moment)
        decisions = _agree([rank.planner for rank in ranks], moments, joint)
        graph = decisions[0].graph
        assert graph is not None and all(decision.graph == graph for decision in decisions)
        for rank, decision, moment in zip(ranks, decisions, moments, strict=True):
            correct = recorded.correct_len[moment.rows]
            lens, tau = rank.take(decision, moment, recorded.logits[moment.rows], correct)
            together.expected += nan if tau is None else tau
            together.tokens += int(torch.minimum(correct, lens - 1).sum()) + len(lens)
            together.rows += int(lens.sum())
        together.steps += 1
        together.graph_rows += graph.rows
        together.seconds += 1e-9 * (scene.truth.base(slots) + int(row[graph.rows]))
    return together


def compare_rules(
    trace: Trace,
    recorded: Recorded,
    scene: Scene,
    loads: Sequence[RankLoad],
    steps: int,
    calibration: Calibration | None = None,
    among: Sequence[int] | None = None,
) -> list[dict[str, Any]]:
    """Every rule on the same steps: figures, and throughput over the maximum of local tiers (filled)."""
    if calibration is not None:
        calibration.check_serves(trace.gamma, recorded_acceptance(trace))
    domain = trace.domain[trace.request_starts]
    allowed = range(len(domain)) if among is None else among
    lines = [
        timeline(
            trace,
            Load(load.slots, seed=i, max_steps=steps, cycle=True),
            [r for r in allowed if load.domains is None or domain[r] in load.domains],
        )
        for i, load in enumerate(loads)
    ]
    by_step = list(zip(*lines, strict=True))
    slots = max(load.slots for load in loads)
    graphs = [rows for rows, _ in scene.graphs(slots, recorded.width) or []]
    found = [_planned(recorded, by_step, loads, scene, calibration, RULES[0], slots * recorded.width)]
    fixed = [_planned(recorded, by_step, loads, scene, calibration, RULES[1], rows) for rows in graphs]
    found.append(max(fixed, key=lambda t: t.tokens / t.seconds))
    found += [_planned(recorded, by_step, loads, scene, calibration, rule) for rule in RULES[2:]]
    base = next(t for t in found if t.rule == "maximum, filled")

    def over(t: Together) -> dict[str, Any]:
        times = base.seconds / t.seconds
        expected = None if isnan(t.expected + base.expected) else t.expected / base.expected * times
        return {"over_maximum": t.tokens / base.tokens * times, "expected_over_maximum": expected}

    return [t.summary() | over(t) for t in found]
