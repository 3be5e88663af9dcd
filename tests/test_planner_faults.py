"""Faults that were reported of other planners (facts of the project's notes, by number), each as a test.

Faults 2 and 3 need several processes: tests/test_planner_ranks.py.
"""

from __future__ import annotations

import warnings

import pytest
import torch
from planner_cases import FLAT, GAMMA, STEEP, rows_of, slots_of, step, table

import dspark_ops
from dspark_ops import Planner
from dspark_ops import planner as package


def test_fault_1_a_flat_table_is_said_aloud() -> None:
    """A flat table pinned the argmax to verify-all, and nobody noticed."""
    with pytest.warns(UserWarning, match="the table is flat .* every draft is verified"):
        planner = Planner(FLAT, gamma=GAMMA, slots=4)
    assert planner.verify_all == "flat"
    decision, plan = step(planner, slots_of(0, 1), rows_of(2, 0.1, 0.1, 0.1))
    assert (decision.reason, decision.trims, plan) == ("flat", False, None)


def test_fault_1_verify_all_can_be_asked_for_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        planner = Planner(None, gamma=GAMMA, slots=4)
    assert planner.decide(slots_of(0)).reason == planner.verify_all == "verify_all"


@pytest.mark.parametrize("drift", [0.0, 1e-3])
def test_fault_2_a_drift_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch, drift: float) -> None:
    """Ranks computed .811 .720 .416 and .810 .718 .417, took lengths 4 and 3, and hung."""
    marks = []
    for off in (0.0, drift):
        planner = Planner(STEEP, gamma=GAMMA, slots=16)
        monkeypatch.setattr(planner._ranks, "compares", True)
        monkeypatch.setattr(planner._ranks, "compare", lambda mark: None)
        slots = torch.arange(16)
        _, plan = step(planner, slots, rows_of(16, 0.811 - off, 0.888, 0.578))
        assert plan is not None
        marks.append(planner.decide(slots).fingerprint)
    assert (marks[0] == marks[1]) is (drift == 0.0) and 0 not in marks


def test_fault_3_tables_have_different_fingerprints() -> None:
    """Rank 0 planned verify-all and its workers compact, because each had loaded its own table."""
    setups = {
        Planner(cost, gamma=GAMMA, slots=4).setup_fingerprint for cost in (STEEP, table((1, 1.0), (9, 2.0)), None)
    }
    assert len(setups) == 3
    assert Planner(STEEP, gamma=GAMMA, slots=4).setup_fingerprint in setups


def test_fault_4_rows_alone_do_not_name_a_graph() -> None:
    """Sizes 1, 32 and 192 of width 6: 32 requests of 6 rows replayed the graph of 192 requests of one row."""
    captured = [(6, 1), (192, 32), (192, 192), (1152, 192)]
    graphs = package.Graphs(captured, width=6)
    assert graphs.pick(rows=192, requests=32) == (192, 32)
    assert graphs.pick(rows=192, requests=192) == (192, 192)
    assert graphs.pick(rows=193, requests=32) is None, "not what was captured for other slots"
    planner = Planner(None, gamma=5, slots=256, graphs=captured)
    assert planner.decide(torch.arange(32)).graph == (192, 32)


def test_fault_9_gamma_comes_from_the_tensor() -> None:
    """A γ override broke the confidence shape: the checkpoint's γ was used."""
    planner = Planner(STEEP, gamma=GAMMA, slots=4, bypass=False)
    decision = planner.decide(slots_of(0, 1))
    with pytest.raises(ValueError, match=r"confidence: expected shape \[2, 3\], got \[2, 5\]"):
        planner.allocate(decision, torch.rand(2, 5))
    with pytest.raises(ValueError, match=r"logits: expected shape \[2, 3\], got \[2, 2\]"):
        planner.allocate(decision, logits=torch.rand(2, 2))
    with pytest.raises(ValueError, match=r"scale: expected shape \[3\], got \[5\]"):
        planner.allocate(decision, logits=torch.rand(2, 3), scale=torch.ones(5))
    with pytest.raises(ValueError, match=r"confidence: expected shape \[2, 3\], got \[2, 5\]"):
        planner.observe(slots_of(0, 1), torch.rand(2, 5))
    other = dspark_ops.TierTable(groups=[dspark_ops.TierGroup(4, [4, 8], [0.01, 0.02])], gamma=5)
    with pytest.raises(ValueError, match="cost: measured for γ = 5, expected γ = 3"):
        Planner(other, gamma=GAMMA, slots=4)


def test_fault_14_nothing_runs_at_low_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning cost more than it saved. Up to 8 rows a step takes 1 ms whatever it verifies, so two requests of four
    rows are not planned; three are, unless planning costs as much as it could save."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a planning operator or a copy ran")

    low, high = slots_of(0, 1), slots_of(0, 1, 2)
    planner = Planner(STEEP, gamma=GAMMA, slots=4)
    assert step(planner, high, rows_of(3, 0.1, 0.1, 0.1))[0].reason == "planned"
    with monkeypatch.context() as patch:
        for name in ("prefix_survival", "plan_budget"):
            patch.setattr(f"dspark_ops.planner._local.{name}", refuse)
        patch.setattr("dspark_ops.planner.planner.allocate_verify_lens", refuse)
        patch.setattr(package.LagRing, "write", refuse)
        decision, plan = step(planner, low, rows_of(2, 0.1, 0.1, 0.1))
        assert (decision.reason, decision.trims, plan) == ("bypass", False, None)
        assert decision.predicted_ns == 1_000_000
        dear = Planner(STEEP, gamma=GAMMA, slots=4, overhead_ns=200_000)
        assert dear.decide(high).reason == "bypass", "12 rows take 1.2 ms: at most 0.2 ms can be saved"
    assert Planner(STEEP, gamma=GAMMA, slots=4, overhead_ns=190_000).decide(high).reason == "planned"


def test_fault_15_a_tiny_gain_is_not_taken() -> None:
    """A plan that predicted a tiny gain lost throughput."""
    cost = table((1, 1.0), (13, 1.02), (16, 1.03))
    confidence = rows_of(4, 0.999, 0.999, 0.02)
    budgets = []
    for ppm in (0, 30_000):
        planner = Planner(cost, gamma=GAMMA, slots=4, min_gain_ppm=ppm, bypass=False)
        step(planner, torch.arange(4), confidence)
        budgets.append(planner.decide(torch.arange(4)).budget)
    assert budgets[0] < 12 == budgets[1], "1 % is a gain, but not 3 %"
