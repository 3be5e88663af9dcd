"""A cost that follows what was observed: convergence from any start, noise, drift, publishing, and its file."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from pathlib import Path

import pytest
import torch
from damage import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st

from dspark_ops import AdditiveTable, FloorTable, OnlineCost, StepCost, TierGroup, TierTable, load_cost_table
from dspark_ops.cost import ContextTable, CorrectedTable, CostTable, parse_cost_table

MS = 1e-3
times = st.floats(1e-5, 1.0)


@st.composite
def staircases(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    """Captured tiers and their true times, rising or not."""
    tiers = sorted(draw(st.sets(st.integers(1, 512), min_size=1, max_size=6)))
    return tiers, draw(st.lists(times, min_size=len(tiers), max_size=len(tiers)))


@st.composite
def starts(draw: st.DrawFn, tiers: list[int]) -> tuple[CostTable, list[int] | None]:
    """Any table to start from, and the tiers that it has to be told."""
    kind = draw(st.sampled_from(["uninitialised", "floor", "additive", "tier"]))
    many = draw(st.lists(times, min_size=len(tiers), max_size=len(tiers)))
    if kind == "uninitialised":
        return FloorTable([1], [1.0], 512), tiers
    if kind == "floor":
        return FloorTable(tiers, [1 / t for t in many], 512), tiers
    if kind == "additive":
        return AdditiveTable(1.0, [1], [0.0], tiers, [t - 0.9 for t in many]), tiers
    return TierTable([TierGroup(1, tiers, many)]), None


@settings(max_examples=50, deadline=None)
@given(data=st.data(), seed=st.integers(0, 99))
def test_converges_to_a_stepped_true_cost_from_any_start(data: st.DataObject, seed: int) -> None:
    tiers, truth = data.draw(staircases())
    start, told = data.draw(starts(tiers))
    cost = OnlineCost(start, told, memory=8, refresh=0)
    rng = random.Random(seed)
    for _ in range(400 * len(tiers)):
        rows = rng.randint(1, tiers[-1]) if rng.random() < 0.5 else rng.choice(tiers)
        cost.observe(rows, truth[bisect_left(tiers, rows)])
    cost.publish()
    row = cost.row(tiers[-1]).tolist()
    for rows in range(1, tiers[-1] + 1):
        want = truth[bisect_left(tiers, rows)] * 1e9
        assert abs(row[rows] / want - 1) < 0.01, (rows, row[rows], want)


@settings(max_examples=20, deadline=None)
@given(start=times, first=times, slope=st.floats(1e-6, 1e-3), seed=st.integers(0, 99))
def test_converges_past_the_last_tier(start: float, first: float, slope: float, seed: int) -> None:
    """Eager steps that grow row by row, here past a tier of 64."""
    cost = OnlineCost(FloorTable([1], [1 / start], 512), [64], memory=8, refresh=500)
    rng = random.Random(seed)
    for _ in range(2000):
        rows = rng.randint(1, 256)
        cost.observe(rows, first if rows <= 64 else first + slope * (rows - 60))
    row = cost.row(256)
    for rows in (1, 64, 65, 100, 128, 200, 256):
        want = (first if rows <= 64 else first + slope * (rows - 60)) * 1e9
        assert abs(int(row[rows]) / want - 1) < 0.02, rows


@pytest.mark.parametrize("seconds", [0.1, 1e-4])
def test_converges_far_past_the_last_knot(seconds: float) -> None:
    """What is learnt is what is published: from a flat start there is no slope to draw the line out with."""
    cost = OnlineCost(FloorTable([1], [333.0], 4096), [16], memory=8, refresh=1)
    for _ in range(500):
        cost.observe(2000, seconds)
    assert int(cost.row(4096)[2000]) == pytest.approx(seconds * 1e9, rel=0.001)


def test_noise_is_averaged_over_the_memory() -> None:
    errors = {}
    for memory in (8, 128):
        cost = OnlineCost(FloorTable([1], [100.0], 64), [64], memory=memory, refresh=1)
        rng, seen = random.Random(0), []
        for i in range(6000):
            cost.observe(64, 5 * MS * math.exp(rng.gauss(0, 0.1)))
            if i > 1000:
                seen.append(math.log(int(cost.row(64)[64]) / 5e6))
        errors[memory] = math.sqrt(sum(e * e for e in seen) / len(seen))
        assert errors[memory] == pytest.approx(0.1 * math.sqrt(1 / (2 * memory)), rel=0.3)
    assert errors[128] < errors[8] / 3


def test_forgetting_rate() -> None:
    """After a change of the machine, half of it is known after about 0.69 * memory steps."""
    cost = OnlineCost(TierTable([TierGroup(1, [8], [1 * MS])]), memory=64, refresh=1)
    for _ in range(300):
        cost.observe(8, 1 * MS)
    steps = 0
    while int(cost.row(8)[8]) < math.sqrt(2) * 1e6:
        cost.observe(8, 2 * MS)
        steps += 1
    assert steps == pytest.approx(0.69 * 64, abs=2)


def test_one_hiccup_moves_it_little() -> None:
    cost = OnlineCost(TierTable([TierGroup(1, [8, 16], [1 * MS, 2 * MS])]), refresh=1)
    for _ in range(100):
        cost.observe(8, 1 * MS)
    cost.observe(8, 1000.0)
    assert int(cost.row(16)[8]) / 1e6 == pytest.approx(4 ** (1 / 64), rel=1e-3)
    assert int(cost.row(16)[16]) / 1e6 == pytest.approx(2 * 4 ** (0.5 / 64), rel=1e-3)


def test_tiers_that_are_not_visited_follow_the_scale() -> None:
    """Else a machine that became faster would leave them looking dear, and no plan would ever go there."""
    table = TierTable([TierGroup(1, [8, 16, 32], [1 * MS, 2 * MS, 4 * MS]), TierGroup(4, [64], [8 * MS])])
    cost = OnlineCost(table, refresh=1)
    for i in range(3000):
        cost.observe((8, 16)[i % 2], (0.5 * MS, 1 * MS)[i % 2])
    assert int(cost.row(16)[16]) == pytest.approx(1e6, rel=1e-4)
    half = 0.5**0.5
    assert 2e6 < int(cost.row(32)[32]) < 4e6 * half
    assert 4e6 < int(cost.row(64, num_reqs=4)[64]) < 8e6 * half


def test_requests_and_context_keep_their_part() -> None:
    """What B and the context add has a scale of its own, and does not go into a tier."""
    table = ContextTable(AdditiveTable(1 * MS, [1, 9], [0.0, 0.8 * MS], [1, 8], [0.0, 1 * MS]), 1e-6, 100)
    cost = OnlineCost(table, [8, 16], memory=16)
    rng = random.Random(0)

    def truth(rows: int, reqs: int, context: int) -> float:
        step = 3 * MS if rows <= 8 else 6 * MS
        return step + 1.5 * (0.1 * MS * (reqs - 1) + 1e-6 * (context - 100 * reqs))

    for _ in range(6000):
        reqs, context = rng.randint(1, 9), rng.randint(0, 4000)
        rows = rng.randint(reqs, 16)
        cost.observe(rows, truth(rows, reqs, context), reqs, context)
    for rows, reqs, context in ((8, 1, 100), (16, 9, 900), (8, 5, 3000), (16, 2, 0)):
        got = int(cost.row(16, num_reqs=reqs)[rows]) + cost.base(reqs, context)
        assert got * 1e-9 == pytest.approx(truth(rows, reqs, context), rel=0.002)


def test_plans_see_only_what_was_published() -> None:
    cost = OnlineCost(FloorTable([1], [100.0], 64), [8, 64], refresh=3)
    assert isinstance(cost, StepCost) and cost.is_flat and cost.version == 1
    row, fingerprint = cost.row(64), cost.fingerprint
    cost.observe(5, 1 * MS)
    cost.observe(5, 1 * MS)
    assert cost.row(64) is row and cost.fingerprint == fingerprint
    cost.observe(5, 1 * MS)
    assert cost.row(64) is not row and cost.fingerprint != fingerprint and cost.version == 2
    assert not cost.is_flat and cost.tiers == (8, 64)
    by_hand = OnlineCost(FloorTable([1], [100.0], 64), [8, 64], refresh=0)
    for _ in range(500):
        by_hand.observe(5, 1 * MS)
    assert by_hand.version == 1 and by_hand.publish() is by_hand.table and by_hand.version == 2


def test_ranks_that_observed_different_times_are_told_apart() -> None:
    """Each rank learning for itself is fault 3 of facts/peers.md; one learns and sends, the others read."""
    ranks = [OnlineCost(FloorTable([1], [1000.0], 64), [8, 64], refresh=0) for _ in range(2)]
    assert ranks[0].fingerprint == ranks[1].fingerprint
    for rank, seconds in zip(ranks, (1.000 * MS, 1.001 * MS), strict=True):
        rank.observe(8, seconds)
        rank.publish()
    assert ranks[0].fingerprint != ranks[1].fingerprint
    received = parse_cost_table(ranks[0].publish().to_json())
    assert received.fingerprint == ranks[0].fingerprint
    assert torch.equal(received.row(64), ranks[0].row(64)) and received.base(3) == ranks[0].base(3)


def test_a_saved_correction_is_continued(tmp_path: Path) -> None:
    table = ContextTable(TierTable([TierGroup(1, [8, 16], [1 * MS, 2 * MS], [20, 24], [3 * MS, 4 * MS])], 7), 1e-7, 10)
    cost = OnlineCost(table)
    for _ in range(50):
        cost.observe(16, 5 * MS, 1, 500)
    cost.publish().save(tmp_path / "t.json")
    loaded = load_cost_table(tmp_path / "t.json")
    assert isinstance(loaded, CorrectedTable) and loaded == cost.table and loaded.gamma == 7
    again = OnlineCost(loaded)
    assert (again.row(40) - cost.row(40)).abs().max() <= 1 and again.base(1, 500) == cost.base(1, 500)
    assert again.table.table == table
    assert check_damaged(load_cost_table, tmp_path / "t.json", 200) > 100


def test_refuses() -> None:
    floor = FloorTable([1], [100.0], 64)
    tier = TierTable([TierGroup(1, [8], [MS])])
    with pytest.raises(ValueError, match="tiers: expected the captured tiers, which a FloorTable does not know"):
        OnlineCost(floor)
    with pytest.raises(ValueError, match="tiers: must be left out"):
        OnlineCost(tier, [8])
    with pytest.raises(ValueError, match="tiers: expected strictly increasing"):
        OnlineCost(floor, [8, 4])
    with pytest.raises(ValueError, match="memory: expected an int >= 2, got 1"):
        OnlineCost(tier, memory=1)
    with pytest.raises(TypeError, match="table: expected a cost table, got list"):
        OnlineCost([1])  # type: ignore[arg-type]
    cost = OnlineCost(tier)
    for seconds in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="seconds: expected a finite time above 0, got"):
            cost.observe(8, seconds)
    with pytest.raises(ValueError, match="rows: expected an int in"):
        cost.observe(-1, 1.0)
    with pytest.raises(ValueError, match=r"base_scale: expected a number in \[2\^-40, 2\^40\], got 0.0"):
        CorrectedTable(tier, 0.0, floor)
    with pytest.raises(TypeError, match="table: expected a table that is not corrected itself"):
        CorrectedTable(tier, 1.0, cost.table)
