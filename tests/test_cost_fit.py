"""Fits and their report: a constructed staircase, the real cells, contexts, noise, and the sweep that measures them."""

from __future__ import annotations

import random
import statistics
import time
from bisect import bisect_left
from pathlib import Path
from typing import Any

import pytest
import torch

from dspark_ops import AdditiveTable, FloorTable, TierGroup, TierTable, allocate_verify_lens, plan_budget
from dspark_ops.cost import ContextTable, CostTable, min_gain_ppm
from dspark_ops.cost.cells import CostCells
from dspark_ops.cost.fit import KINDS, fit_additive, fit_context, fit_floor, fit_table, fit_tiers
from dspark_ops.cost.fit_report import best_kind, expected_tokens, mean_lost, report, spread_survival
from dspark_ops.cost.noise import range_over_deviation
from dspark_ops.cost.sweep import sweep_plan

MS = 1e-3
EXAMPLES = Path(__file__).parents[1] / "examples/traces"
TIERS = [32, 64, 96, 128]
TIMES = [10 * MS, 12 * MS, 17 * MS, 20 * MS]


def truth(bs: int, rows: int, context: int = 0) -> float:
    """A machine with a cliff of 40 % behind 64 rows, and an eager path."""
    at = bisect_left(TIERS, rows)
    step = TIMES[at] if at < len(TIERS) else 26 * MS + 0.1 * MS * (rows - 128)
    return step + bs * 10e-6 + bs * context * 1e-8


def profile(plan: dict[str, Any], noise: float = 0.0, repeats: int = 1) -> CostCells:
    """What a profiler makes of a plan."""
    rng = random.Random(0)
    cells = []
    for cell in plan["cells"]:
        true = truth(cell["bs"], cell["M"], cell.get("context", 0))
        cells += [cell | {"T": true * (1 + rng.gauss(0, noise))} for _ in range(repeats)]
    return CostCells.from_list(cells, plan["gamma"], plan["tiers"])


CELLS = profile(sweep_plan(TIERS, [16, 24, 32], 7))


def test_the_additive_fit_loses_the_cliff_and_the_tier_fit_keeps_it() -> None:
    """63, 64 and 65 rows are one bin of 64 to the additive fit, two tiers to the machine: 12 ms and 17 ms."""
    additive, tier = fit_additive(CELLS), fit_tiers(CELLS)
    by_additive, by_tier = (
        [t.base(24) + int(t.row(65, num_reqs=24)[rows]) for rows in (63, 64, 65)] for t in (additive, tier)
    )
    assert by_tier == [round(truth(24, rows) * 1e9) for rows in (63, 64, 65)]
    assert by_tier[2] / by_tier[1] > 1.4
    assert 0.99 < by_additive[2] / by_additive[1] < 1.01, "the cliff is gone"
    errors = {kind: report(kind, table, CELLS).tier_errors for kind, table in (("additive", additive), ("tier", tier))}
    for offset in (-2, -1, 0, 1, 2):
        assert errors["tier"][offset] == pytest.approx(0, abs=1e-6)
    assert errors["additive"][0] > 0.02 and errors["additive"][1] < -0.02, "too dear at the tier, too cheap past it"


def planned_rows(table: CostTable, bs: int) -> int:
    return int(plan_budget(spread_survival(bs, 7).float(), table, search="global")[1])


def test_a_planner_pays_for_the_lost_cliff() -> None:
    """Every M is judged by the machine itself, not by cells."""
    lost = {}
    for kind in ("additive", "tier"):
        table = fit_table(CELLS, kind)
        shares = []
        for bs in (16, 24, 32):
            tokens = expected_tokens(spread_survival(bs, 7))
            rate = [tokens[rows - bs] / truth(bs, rows) for rows in range(bs, 8 * bs + 1)]
            shares.append(1 - rate[planned_rows(table, bs) - bs] / max(rate))
        lost[kind] = max(shares)
    assert lost["tier"] < 1e-9
    assert lost["additive"] > 0.05
    reports = {kind: report(kind, fit_table(CELLS, kind), CELLS) for kind in KINDS}
    assert best_kind(reports) == "tier" and mean_lost(reports["tier"].choices) < 1e-6
    assert max(choice.throughput_lost for choice in reports["additive"].choices) == pytest.approx(lost["additive"])
    tier = reports["tier"]
    assert [choice.chosen_rows for choice in tier.choices] == [choice.best_rows for choice in tier.choices]


def test_the_real_cells() -> None:
    """A CPU without graphs (examples/traces): T is nearly a line in M there, so much depends on what lies between."""
    cells = CostCells.load(EXAMPLES / "cost_cells.json")
    reports = {kind: report(kind, fit_table(cells, kind, ()), cells) for kind in KINDS}
    assert reports["additive"].quality.r2 == pytest.approx(0.9717, abs=1e-3), "which looks good"
    assert reports["additive"].quality.mean_relative_error > 0.15, "and is 15 % off, since small steps weigh nothing"
    assert reports["tier"].quality.rms_seconds < 1e-9, "a line through the cells themselves"
    unseen = {kind: one.held_out.mean_relative_error for kind, one in reports.items() if one.held_out is not None}
    assert unseen["floor"] < unseen["tier"] < unseen["additive"], "here M says more than bs, and floor pools all bs"
    assert mean_lost(reports["floor"].measured_choices) < 0.001
    assert mean_lost(reports["floor"].choices) > 0.03, "but between cells its steps are not the machine's"
    assert 0.01 < mean_lost(reports["additive"].measured_choices) < mean_lost(reports["additive"].choices)
    assert best_kind(reports) == "tier"
    assert all(error is None for error in reports["tier"].tier_errors.values())


def test_floor_fit_is_the_median_speed() -> None:
    cells = CostCells.from_list([{"bs": b, "M": m, "T": t} for b, m, t in ((1, 4, 0.1), (2, 4, 0.2), (2, 8, 0.5))])
    assert fit_floor(cells) == FloorTable([4, 8], [7.5, 2.0], 8)


def test_additive_fit_by_hand() -> None:
    cells = [
        {"bs": bs, "M": rows, "T": 0.01 + 0.001 * (bs == 2) + 0.005 * (rows > 9)}
        for bs, rows in ((1, 2), (2, 3), (1, 64), (2, 70))
    ]
    table = fit_additive(CostCells.from_list(cells))
    assert table.bs_probes == (1, 2) and table.m_probes == (0, 64)
    assert [table.bias_seconds, *table.alpha_seconds, *table.theta_seconds] == pytest.approx([0.01, 0, 0.001, 0, 0.005])
    with pytest.raises(ValueError, match="cells: expected at least 4 for an additive fit, got 3"):
        fit_additive(CostCells.from_list(cells[:3]))


def test_tier_fit_takes_medians_and_what_cells_say() -> None:
    cells = [
        {"bs": 2, "M": 3, "T": 1 * MS},
        {"bs": 2, "M": 4, "T": 3 * MS},
        {"bs": 2, "M": 2, "T": 2 * MS},
        {"bs": 2, "M": 4, "T": 9 * MS, "tier": -1},
        {"bs": 2, "M": 3, "T": 5 * MS, "tier": 8},
        {"bs": 2, "M": 12, "T": 7 * MS},
    ]
    found = fit_tiers(CostCells.from_list(cells), [4, 8])
    assert found == TierTable([TierGroup(2, [4, 8], [2 * MS, 5 * MS], [4, 12], [9 * MS, 7 * MS])])
    without = CostCells.from_list([c for c in cells if c.get("tier") != 8] + [{"bs": 2, "M": 12, "T": MS, "tier": 16}])
    with pytest.raises(ValueError, match="cells: expected one that replays tier 8 at bs 2, got none"):
        fit_tiers(without, [4, 8, 16])
    with pytest.raises(ValueError, match="tier: expected at least M = 9 rows, or -1 for eager, got 8"):
        CostCells.from_list([{"bs": 1, "M": 9, "T": 1.0, "tier": 8}])
    with pytest.raises(ValueError, match="kind: expected one of floor, additive, tier, got 'line'"):
        fit_table(without, "line")


def test_a_missing_largest_tier_is_refused_where_eager_steps_lie_past_it() -> None:
    """Its rows would be drawn as a gentle line from the tier before to the eager sample: the cliff would be gone."""
    cells = [{"bs": 1, "M": 8, "T": 0.01}, {"bs": 1, "M": 40, "T": 0.05}]
    with pytest.raises(ValueError, match="cells: expected one that replays tier 32 at bs 1, got none"):
        fit_tiers(CostCells.from_list(cells, tiers=[8, 32]))
    assert fit_tiers(CostCells.from_list(cells[:1], tiers=[8, 32])).tiers == (8,)


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_context_gives_a_context_term(kind: str) -> None:
    cells = profile(sweep_plan(TIERS, [16, 32], 7, contexts=[1000, 9000]))
    slope, context = fit_context(cells)
    assert slope == pytest.approx(1e-8) and context == 1000
    table = fit_table(cells, kind)
    assert isinstance(table, ContextTable)
    more = table.base(32, 32 * 20_000) - table.base(32, 32 * 1000)
    assert more == pytest.approx(32 * 19_000 * 10, rel=1e-6)
    if kind == "tier":
        got = table.base(32, 32 * 5000) + int(table.row(96, num_reqs=32)[96])
        assert got * 1e-9 == pytest.approx(truth(32, 96, 5000), rel=1e-6)
        assert table.gamma == 7 and report(kind, table, cells).quality.worst_relative_error < 1e-6


def test_contexts_that_tell_nothing() -> None:
    def cells(*triples: tuple[int, int | None, float]) -> CostCells:
        return CostCells.from_list([{"bs": 1, "M": m, "context": c, "T": t} for m, c, t in triples])

    for given, says in (
        (cells((1, 10, 0.1), (1, None, 0.2)), "cell 1: context: expected one, as other cells have it"),
        (cells((1, 10, 0.1), (2, 20, 0.2)), "expected some that differ in context only, got none"),
        (cells((1, 10, 0.2), (1, 20, 0.1)), "expected T to grow with context, got -0.01 seconds per token"),
    ):
        with pytest.raises(ValueError, match=says):
            fit_table(given, "tier")


def test_sweep_plan_covers_every_edge() -> None:
    plan = sweep_plan(TIERS, [4, 32], 7, contexts=[10, 20], repeats=3)
    points = {(c["bs"], c["M"], c["tier"], c["context"]) for c in plan["cells"]}
    assert len(points) == len(plan["cells"])
    assert {c["bs"] for c in plan["cells"]} == {4, 32}
    for bs, rows, tier, _ in points:
        assert bs <= rows <= 8 * bs
        assert tier == min((t for t in TIERS if t >= rows), default=-1)
    for context in (10, 20):
        assert {(32, t + d, context) for t in TIERS for d in range(-2, 3) if t + d >= 32} <= {
            (bs, rows, c) for bs, rows, _, c in points
        }
        assert {(4, 4), (4, 32), (32, 32), (32, 256)} <= {(bs, m) for bs, m, _, c in points if c == context}
    assert sum(1 for bs, _, tier, _ in points if tier == -1 and bs == 32) >= 2 * 4, "the slope of the eager path"
    for bad, says in (
        (([8, 8], [1], 7), "tiers: expected strictly increasing"),
        (([0, 8], [1], 7), "tiers: expected an int in|tiers: expected an int >= 1"),
        (([8], [0], 7), "num_reqs: expected an int"),
        (([8], [1], 0), "gamma: expected an int"),
        (([8], [1 << 17], 7), r"num_reqs \* \(gamma \+ 1\): expected an int"),
    ):
        with pytest.raises(ValueError, match=says):
            sweep_plan(*bad)


def test_tippett() -> None:
    for samples, want in ((2, 1.128), (5, 2.326), (15, 3.472), (25, 3.931)):
        assert range_over_deviation(samples) == pytest.approx(want, abs=1e-3)


def test_noise_is_told_from_repeats_and_from_ranges() -> None:
    noisy = profile(sweep_plan(TIERS, [16], 7), noise=0.05, repeats=15)
    assert noisy.relative_noise() == pytest.approx(0.05, rel=0.15) and noisy.samples_per_cell() == 15
    ranges = []
    for cell in {(c.rows, c.num_reqs) for c in noisy.samples}:
        times = [c.seconds for c in noisy.samples if (c.rows, c.num_reqs) == cell]
        spread = {"n": 15, "T_min": min(times), "T_max": max(times)}
        ranges.append({"bs": 16, "M": cell[0], "T": statistics.median(times), **spread})
    assert CostCells.from_list(ranges).relative_noise() == pytest.approx(0.05, rel=0.2)
    with pytest.raises(ValueError, match="expected repeated cells, or n with T_min and T_max"):
        CELLS.relative_noise()


def test_min_gain_covers_the_noise_of_two_entries() -> None:
    """Fault 15 of facts/peers.md. Two tiers that take the same time, each the median of 15: verify-all is right."""
    rng = random.Random(0)
    survival = torch.tensor([[1.0, 2.0**-19]])  # the second draft is worth nothing, nor does it cost anything
    ppm = min_gain_ppm(0.05, 15)
    left = {0: 0, ppm: 0}
    for _ in range(400):
        times = [statistics.median(MS * (1 + rng.gauss(0, 0.05)) for _ in range(15)) for _ in range(2)]
        table = TierTable([TierGroup(1, [2, 3], times)])
        for gain in left:
            left[gain] += int(plan_budget(survival, table, search="global", min_gain_ppm=gain)[1]) < 3
    assert left[0] > 150, "without it noise decides"
    assert left[ppm] / 400 == pytest.approx(0.05, abs=0.03)
    assert min_gain_ppm(0.0) == 0 and min_gain_ppm(1.0) == 10**6
    assert min_gain_ppm(0.05, 60) == pytest.approx(ppm / 2, rel=1e-3)
    with pytest.raises(ValueError, match="relative_noise: expected a number in"):
        min_gain_ppm(-0.1)


def test_a_table_for_another_gamma_is_refused() -> None:
    """Fault 9 of facts/peers.md: γ comes from the tensor."""
    table = TierTable([TierGroup(2, [16], [MS])], gamma=7)
    for wrapped in (table, ContextTable(table, 0.0, 0)):
        allocate_verify_lens(torch.rand(2, 7), wrapped, search="global")
        with pytest.raises(ValueError, match="step_ns: expected a table for γ = 3, got one for γ = 7"):
            allocate_verify_lens(torch.rand(2, 3), wrapped, search="global")
        with pytest.raises(ValueError, match="step_ns: expected a table for γ = 3, got one for γ = 7"):
            plan_budget(torch.rand(2, 3), wrapped, search="global")


def test_a_row_for_1024_requests_of_16_rows_takes_under_a_millisecond() -> None:
    """The best of many: no operation in it may wait for torch's threads, or a busy host never gets there."""
    probes = list(range(1024, 16385, 256))
    seconds = [1e-6 * m for m in probes]
    tables: list[CostTable] = [
        TierTable([TierGroup(1024, probes, seconds, [16400, 20000], [0.02, 0.03])]),
        TierTable([TierGroup(1024, [], [], probes, seconds)]),
        AdditiveTable(0.01, [1], [0.0], probes, seconds),
        FloorTable(probes, [1 / t for t in seconds], 16384),
    ]
    for table in tables:
        best = 1.0
        for _ in range(50):
            start = time.perf_counter()
            table._build_row(1024 * 16, 0)
            best = min(best, time.perf_counter() - start)
        assert best < MS, f"{type(table).__name__}: {best}"
