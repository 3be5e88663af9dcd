"""Held-out comparison and replay on the small real traces; the ladder on made-up candidates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import torch

from dspark_ops._threads import one_thread
from dspark_ops.calibration import OffsetRule, Samples, StsCalibration, fit_affine, fit_sts, follow_offsets, identity
from dspark_ops.calibration.choose import choose
from dspark_ops.calibration.compare import Candidate, Comparison, compare
from dspark_ops.calibration.simulate import Schedule, best_fixed, schedule, simulate, simulate_oracle
from dspark_ops.cost.cells import CostCells
from dspark_ops.metrics import prefix_outcome
from dspark_ops.replay import Options, replay, step_rows
from dspark_ops.trace import Trace

TRACES = Path(__file__).parents[1] / "examples/traces"


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


@pytest.fixture(scope="module")
def cells() -> CostCells:
    return CostCells.load(TRACES / "cost_cells.json")


@pytest.fixture(scope="module")
def greedy() -> Trace:
    return Trace.load(TRACES / "greedy_small.npz")


@pytest.fixture(scope="module")
def sampled() -> Trace:
    return Trace.load(TRACES / "sampling_small.npz")


@pytest.fixture(scope="module")
def found(greedy: Trace, cells: CostCells) -> Comparison:
    return compare(Samples.from_trace(greedy, "z"), cells, batches=(16,), orders=2)


def eces(comparison: Comparison, name: str) -> list[float]:
    candidates = comparison.as_dict()["candidates"]
    return [s["ece"] for c in candidates if c["name"] == name for s in c["cumulative"]]


def test_greedy_outcomes_of_an_overconfident_head(found: Comparison) -> None:
    """The figures of docs/calibration.md, on half of their data."""
    none, sts, affine, offset = (eces(found, c.name) for c in found.candidates)
    assert none[0] > 0.15 and 0.08 < sts[0] < none[0] and affine[0] < 0.03 and offset[0] < 0.04
    by_name = {c["name"]: c for c in found.as_dict()["candidates"]}
    assert by_name["affine+offset"]["brier"] < by_name["affine"]["brier"] < by_name["sts"]["brier"]
    auroc = {name: c["cumulative"][0]["auroc"] for name, c in by_name.items()}
    assert auroc["affine+offset"] > auroc["affine"] + 0.02
    speed = {name: c["throughput"][16]["over_best_fixed"] for name, c in by_name.items()}
    assert speed["affine+offset"] > speed["affine"] > speed["none"] + 0.01
    assert found.oracle[16] > 1.25
    assert found.ship == "affine+offset" and len(found.reasons) == 3


def test_the_bias_of_tau_goes_with_the_calibration(found: Comparison) -> None:
    (none,), (offset,) = (found[name].tau.by("batch", "lag", "acceptance") for name in ("none", "affine+offset"))
    assert (none["batch"], none["lag"], none["acceptance"]) == (16, 1, "greedy")
    assert none["bias"] < -2 and abs(offset["bias"]) < 1
    assert sum(b["steps"] for b in found["none"].tau.by("tier")) == none["steps"]
    assert all(b["tier"] >= 16 for b in found["none"].tau.by("tier"))


def test_sampled_outcomes(sampled: Trace) -> None:
    """Greedy labels on sampled traffic, as SGLang's collector takes them, miss what sampling accepts by a third."""
    samples = Samples.from_trace(sampled, "z")
    argmax = Samples.from_trace(sampled, "z", "greedy")
    assert (samples.acceptance, argmax.acceptance) == ("sampled", "greedy")
    assert argmax.outcome[:, 0].double().mean() < 0.75 * samples.outcome[:, 0].double().mean()
    comparison = compare(samples)
    assert eces(comparison, "none")[0] > 0.12 > 0.04 > eces(comparison, "affine")[0]
    assert comparison.ship.startswith("affine")
    with pytest.raises(ValueError, match="expected one fitted to sampled acceptance, got one fitted to greedy"):
        simulate(samples, schedule(samples, 2), torch.arange(1, 18, dtype=torch.int32), fit_affine(argmax))


def test_a_greedy_trace_does_not_tell_what_sampling_accepts(greedy: Trace) -> None:
    with pytest.raises(ValueError, match="expected greedy, which is all that a greedy trace tells"):
        Samples.from_trace(greedy, "z", "sampled")
    with pytest.raises(ValueError, match="head: expected z or z_refit"):
        Samples.from_trace(greedy, "y")


def test_every_row_is_predicted_by_a_fit_that_did_not_see_its_request(greedy: Trace) -> None:
    """Wrong outcomes in one half change nothing but the other half's predictions."""
    samples = Samples.from_trace(greedy, "z")
    half = torch.cat(samples.requests()[::2])
    wrong = samples.correct_len.clone()
    wrong[half] = 0
    spoilt = Samples(samples.logits, wrong, samples.acceptance, samples.request)
    for name, fit in (("sts", fit_sts), ("affine", fit_affine)):
        a, b = (compare(s, candidates={name: fit})[name].confidence for s in (samples, spoilt))
        same = (a == b).all(1)
        assert same[half].all() and not same.all()


@pytest.mark.parametrize("search", ["history", "first_drop"])
def test_simulate_equals_the_replay(greedy: Trace, cells: CostCells, search: str) -> None:
    """On the replay's own schedule and without calibration: the same rows, tokens, seconds and predicted tau."""
    rows = step_rows(greedy, 16, 40)
    steps = Schedule(torch.from_numpy(rows), torch.from_numpy(greedy.step[rows] == 0))
    run = simulate(Samples.from_trace(greedy, "z"), steps, cells.step_ns(16, 16 * 8), identity(7, "greedy"), search)
    report = replay(greedy, cells, Options(16, "z", search, max_steps=40))
    compact = report["policies"][2]
    assert (run.rows, run.tokens) == (compact["rows_verified"], compact["tokens_committed"])
    assert run.seconds == pytest.approx(compact["seconds"])
    (tau,) = run.tau.by()
    assert tau["predicted"] == pytest.approx(compact["predicted_tau"])
    counts = run.counts
    assert counts.committed == run.tokens and counts.proposed == run.rows - 40 * 16
    assert (counts.request_steps, counts.drafted) == (40 * 16, 40 * 16 * 7)
    length, fixed = best_fixed(Samples.from_trace(greedy, "z"), steps, cells.step_ns(16, 16 * 8))
    assert length == report["best_fixed"]["verify_len"]
    assert fixed.tokens_per_second == pytest.approx(report["best_fixed"]["tokens_per_second"])


def test_simulated_offsets_are_each_requests_own(greedy: Trace) -> None:
    """At a flat cost all is verified, so slots reused in any order must predict what each request alone would."""
    samples = Samples.from_trace(greedy, "z")
    rule = OffsetRule(0.3, 0.95)
    calibration = msgspec.structs.replace(fit_affine(samples), offset=rule)
    steps = schedule(samples, 12, seed=5)
    run = simulate(samples, steps, torch.full((12 * 8 + 1,), 1000, dtype=torch.int32), calibration, "global")
    survival = follow_offsets(samples, calibration)[0].double().cumprod(1)
    (tau,) = run.tau.by()
    assert tau["predicted"] == pytest.approx(12 + float(survival[steps.rows].sum()) / len(steps.rows), rel=1e-5)
    assert run.counts.accepted == int(samples.correct_len[steps.rows].sum())


def test_history_is_the_slots_own_however_the_samples_lie(greedy: Trace, cells: CostCells) -> None:
    """A recorder's shards hold a step of every request after another: the row before is not the request's own."""
    samples = Samples.from_trace(greedy, "z")
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(1))
    steps = schedule(samples, 8, seed=2)
    shuffled = Schedule(order.argsort()[steps.rows], steps.first)
    runs = [
        simulate(s, plan, cells.step_ns(8, 64), identity(7, "greedy"))
        for s, plan in ((samples, steps), (samples[order], shuffled))
    ]
    assert (runs[0].rows, runs[0].tokens) == (runs[1].rows, runs[1].tokens)


def test_the_oracle_wastes_nothing(greedy: Trace, cells: CostCells) -> None:
    samples = Samples.from_trace(greedy, "z")
    steps = schedule(samples, 8, seed=3)
    run = simulate_oracle(samples, steps, cells.step_ns(8, 64))
    assert run.tokens == run.rows, "every verified draft is accepted"
    others = (simulate(samples, steps, cells.step_ns(8, 64), c) for c in (identity(7, "greedy"), fit_affine(samples)))
    assert all(run.tokens_per_second > other.tokens_per_second for other in others)


def test_a_schedule_serves_whole_requests_in_order(greedy: Trace) -> None:
    samples = Samples.from_trace(greedy, "z")
    steps = schedule(samples, 5, seed=1)
    assert torch.equal(steps.first, torch.from_numpy(greedy.step == 0)[steps.rows])
    served = steps.rows.flatten().tolist()
    assert len(served) == len(set(served))
    assert not torch.equal(steps.rows[0], schedule(samples, 5, seed=2).rows[0])
    with pytest.raises(ValueError, match="batch: expected a number in"):
        schedule(samples, 76)


def test_global_search_is_refused_for_sampled_acceptance(sampled: Trace) -> None:
    samples = Samples.from_trace(sampled)
    steps, row = schedule(samples, 2), torch.arange(1, 18, dtype=torch.int32)
    with pytest.raises(ValueError, match="search: expected history or first_drop with sampled acceptance"):
        simulate(samples, steps, row, identity(7, "sampled"), "global")
    with pytest.raises(ValueError, match="search: expected one of"):
        simulate(samples, steps, row, identity(7, "sampled"), "best")
    with pytest.raises(ValueError, match="expected one fitted for γ = 7, got one for γ = 2"):
        simulate(samples, steps, row, StsCalibration(temperatures=[1.0, 1.0], acceptance="sampled"))


def ladder(*candidates: tuple[str, float, float]) -> tuple[str, list[str]]:
    """name, confidence (of a coin that falls half the time; 0.5 is best), throughput."""
    steps = 400
    correct = torch.arange(steps) % 2
    samples = Samples(torch.zeros(steps, 1), correct, "greedy", torch.arange(steps) // 10)
    assert prefix_outcome(correct, 1).double().mean() == 0.5
    made = [
        Candidate(name, torch.full((steps, 1), c), throughput={} if speed == 0 else {8: [speed, speed * 1.01]})
        for name, c, speed in candidates
    ]
    return choose(made, samples)


def test_the_ladder() -> None:
    # Throughput decides where it tells, whatever Brier says ...
    assert ladder(("none", 0.5, 1.0), ("sts", 0.7, 1.02))[0] == "sts"
    assert ladder(("none", 0.7, 1.0), ("sts", 0.5, 0.98))[0] == "none"
    # ... Brier where it does not, and the simpler one where neither does.
    assert ladder(("none", 0.7, 1.0), ("sts", 0.5, 1.001))[0] == "sts"
    assert ladder(("none", 0.5, 1.0), ("sts", 0.5, 1.001))[0] == "none"
    assert ladder(("none", 0.9, 0), ("sts", 0.8, 0), ("affine", 0.5, 0), ("more", 0.5, 0))[0] == "affine"
    # A step that loses does not end the climb.
    ship, reasons = ladder(("none", 0.7, 1.0), ("sts", 0.7, 0.9), ("affine", 0.7, 1.1))
    assert ship == "affine"
    assert reasons == [
        "sts against none: throughput -10.00%, Brier +0.00000 ± 0.00000: none",
        "affine against none: throughput +10.00%, Brier +0.00000 ± 0.00000: affine",
    ]


def test_too_few_requests_and_unknown_ones_are_refused() -> None:
    one = Samples(torch.zeros(3, 1), torch.tensor([0, 1, 0]), "greedy", torch.tensor([4, 4, 4]))
    with pytest.raises(ValueError, match="expected at least 2 requests to hold some out, got 1"):
        compare(one)
    with pytest.raises(ValueError, match="expected to know the request of each step"):
        compare(Samples(one.logits, one.correct_len, "greedy"))


def test_without_a_rule_the_offset_stays_zero(greedy: Trace) -> None:
    samples = Samples.from_trace(greedy, "z")
    confidence, used = follow_offsets(samples, fit_affine(samples))
    assert not used.any()
    assert confidence.shape == samples.logits.shape
