"""The two rules of agreement, against their definitions."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from random import Random

import pytest
import torch
from planner_cases import STEEP, table

from dspark_ops import Planner, RanksDiffer
from dspark_ops.planner import Graphs, JointRule, Local, MaximumRule, PlanningCost
from dspark_ops.planner._agreement import FALL_BACK

WIDTH = 4
GRAPHS = Graphs([(rows, slots) for slots in (4, 16, 40) for rows in range(slots, slots * WIDTH + 1, slots // 2)], WIDTH)
GENTLE = table(*((rows, 5 + 0.03 * rows) for rows in range(1, 257)))
COST = PlanningCost(GENTLE, WIDTH)


def random_local(r: Random, requests: int) -> Local:
    """A rank whose tau rises with the tier, up to nearly the largest that a sum may hold."""
    rows = requests * r.randint(1, WIDTH)
    most, scale = r.uniform(0, 60), r.uniform(5, 100)
    tau = [int((requests + most * (1 - exp(-tier / scale))) * (1 << 54)) if requests else 0 for tier in GRAPHS.rows]
    return Local(requests, rows, r.randint(0, 1 << 20), [tau, [int(tier < requests) for tier in GRAPHS.rows]])


def reduced(rule: MaximumRule | JointRule, ranks: list[Local]) -> list[int]:
    vectors = [rule.vector(local) for local in ranks]
    return [max(c) if rule.reduction == "max" else sum(c) for c in zip(*vectors, strict=True)]


def best_by_definition(ranks: list[Local]) -> tuple[int, int]:
    """argmax over the graphs of the needed slots, that all ranks can hold, of the sum of tau over T."""
    slots = min(s for s in GRAPHS.slots if s >= max(local.requests for local in ranks))
    row = GENTLE.row(256)

    def rate(tier: int) -> Fraction:
        column = GRAPHS.rows.index(tier)
        return Fraction(sum(local.tier_tau[0][column] for local in ranks if local.tier_tau), int(row[tier]))

    able = [t for t in GRAPHS.tiers[slots] if t >= max(local.requests for local in ranks)]
    return max(able, key=lambda tier: (rate(tier), -tier)), slots


def test_joint_rule_is_the_argmax_over_the_sum() -> None:
    r = Random(5)
    rule = JointRule(GRAPHS, COST)
    chosen = set()
    for _ in range(100):
        ranks = [random_local(r, r.choice([0, 1, 4, 5, 16, 33])) for _ in range(7)]
        if not any(local.requests for local in ranks):
            continue
        agreed = rule.choose(reduced(rule, ranks))
        assert agreed.graph == best_by_definition(ranks)
        assert max(reduced(rule, ranks)) < 1 << 63
        chosen.add(agreed.graph)
    assert len(chosen) > 6


@pytest.mark.parametrize("rule", [MaximumRule(GRAPHS), JointRule(GRAPHS, COST), MaximumRule(None)])
def test_a_lone_rank_agrees_with_itself(rule: MaximumRule | JointRule) -> None:
    r = Random(9)
    for requests in (0, 1, 4, 17, 40, 41):
        local = random_local(r, requests)
        assert rule.alone(local) == rule.choose(rule.vector(local))
    without_plan = Local(3, -1)
    assert rule.alone(without_plan).rows == rule.choose(rule.vector(without_plan)).rows == -1


@pytest.mark.parametrize("rule", [MaximumRule(GRAPHS), JointRule(GRAPHS, COST)])
def test_one_without_a_plan_makes_all_fall_back(rule: MaximumRule | JointRule) -> None:
    r = Random(1)
    ranks = [random_local(r, 4), Local(3, -1), Local(0, 0)]
    assert rule.choose(reduced(rule, ranks)) == FALL_BACK
    assert rule.choose(reduced(rule, [ranks[0], ranks[2]])).graph is not None
    assert rule.choose(reduced(rule, [ranks[2]] * 3)) == FALL_BACK, "nobody has requests"


def test_joint_rule_falls_back_where_no_graph_holds_the_requests() -> None:
    rule = JointRule(GRAPHS, COST)
    assert rule.choose(reduced(rule, [random_local(Random(2), 41), random_local(Random(3), 1)])) == FALL_BACK


def test_joint_rule_tells_tables_that_have_come_to_differ() -> None:
    """Such as those of an `OnlineCost` on each rank: their argmax would differ, and the ranks hang."""
    r = Random(3)
    other = JointRule(GRAPHS, PlanningCost(STEEP, WIDTH))
    rules = [JointRule(GRAPHS, COST), other, JointRule(GRAPHS, COST)]
    vectors = [rule.vector(random_local(r, 4)) for rule in rules]
    for rule in rules:
        with pytest.raises(RanksDiffer, match="cost: the ranks' tables have come to differ"):
            rule.choose([sum(column) for column in zip(*vectors, strict=True)])
    same = [sum(column) for column in zip(vectors[0], vectors[2], strict=True)]
    assert rules[0].choose(same) == rules[2].choose(same)


def test_a_runtime_may_reduce_by_itself() -> None:
    """propose, reduce, conclude: idle ranks and ranks without a plan included, as with a group."""
    graphs = [(rows, 8) for rows in range(8, 33, 4)]
    busy, idle = (Planner(STEEP, gamma=3, slots=8, graphs=graphs, bypass=False) for _ in range(2))
    slots = torch.arange(6)
    for falls_back in (False, True):
        proposals = [busy.propose(slots, fall_back=falls_back), idle.propose()]
        reduced = [max(column) for column in zip(*proposals, strict=True)]
        decisions = [planner.conclude(reduced) for planner in (busy, idle)]
        assert decisions[0].graph == decisions[1].graph == (None if falls_back else (24, 8))
        assert [d.reason for d in decisions] == (["fallback"] * 2 if falls_back else ["planned", "idle"])
    with pytest.raises(ValueError, match="conclude: nothing has been proposed"):
        busy.conclude(reduced)


def test_joint_rule_keeps_everything_for_a_small_gain() -> None:
    graphs = Graphs([(9, 8), (16, 8), (32, 8)], WIDTH)
    local = Local(8, 8, 0, [[95, 100, 100], [0, 0, 0]])  # T = 1.05, 1.4, 2.2 ms
    tiers = {}
    for ppm, overhead in ((0, 0), (200_000, 0), (0, 300_000), (300_000, 0)):
        agreed = JointRule(graphs, PlanningCost(STEEP, WIDTH), ppm, overhead).alone(local)
        tiers[ppm, overhead] = agreed.rows
    assert tiers == {(0, 0): 9, (200_000, 0): 9, (0, 300_000): 16, (300_000, 0): 16}
