"""Scores against slow loops by definition, counts and biases against hand-made figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dspark_ops.metrics import (
    AcceptanceCounts,
    Bucket,
    TauBias,
    auroc,
    brier,
    count_acceptance,
    expected_calibration_error,
    reliability,
    score,
    score_conditional,
    score_cumulative,
    visible_len,
)

# Few different values, so that ties are common; 0 and 1 among them.
PAIRS = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 0.9, 1.0]), st.booleans()), min_size=1)


def slow_ece(p: Sequence[float], y: Sequence[int], bins: int) -> float:
    total = 0.0
    for b in range(bins):
        members = [i for i, x in enumerate(p) if min(int(min(max(x, 1e-8), 1 - 1e-8) * bins), bins - 1) == b]
        if members:
            total += abs(sum(p[i] for i in members) - sum(y[i] for i in members))
    return total / len(p)


@settings(max_examples=100, deadline=None)
@given(PAIRS, st.integers(1, 20))
def test_scores_by_definition(pairs: list[tuple[float, bool]], bins: int) -> None:
    p, y = [a for a, _ in pairs], [int(b) for _, b in pairs]
    prediction, outcome = torch.tensor(p, dtype=torch.float64), torch.tensor(y)
    assert expected_calibration_error(prediction, outcome, bins) == pytest.approx(slow_ece(p, y, bins), abs=1e-7)
    assert brier(prediction, outcome) == pytest.approx(sum((a - b) ** 2 for a, b in zip(p, y, strict=True)) / len(p))
    positive, negative = ([a for a, b in zip(p, y, strict=True) if b == k] for k in (1, 0))
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in positive for b in negative]
    found = auroc(prediction, outcome)
    assert math.isnan(found) if not wins else found == pytest.approx(sum(wins) / len(wins), abs=1e-12)
    points = reliability(prediction, outcome, bins)
    assert sum(n for n, _, _ in points) == len(p)
    assert sum(n * o for n, _, o in points) == pytest.approx(sum(y))


def test_the_floor_is_what_a_perfect_predictor_scores() -> None:
    g = torch.Generator().manual_seed(1)
    p = torch.rand(3000, generator=g, dtype=torch.float64)
    found = [score(p, torch.rand(3000, generator=g) < p) for _ in range(200)]
    assert sum(s.ece for s in found) / len(found) == pytest.approx(found[0].ece_floor, rel=0.05)


def test_conditional_and_cumulative_by_hand() -> None:
    confidence = torch.tensor([[0.5, 0.5], [1.0, 0.5], [0.5, 0.0]])
    correct = torch.tensor([0, 2, 1])
    first, second = score_conditional(confidence, correct)
    assert (first.samples, first.mean_prediction, first.mean_outcome) == (3, pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert (second.samples, second.mean_prediction, second.mean_outcome) == (2, 0.25, 0.5)
    assert second.auroc == 1.0
    (one, two), everything = score_cumulative(confidence, correct)
    assert one.brier == pytest.approx((0.25 + 0 + 0.25) / 3)
    assert (two.samples, two.mean_prediction, two.mean_outcome) == (3, pytest.approx(0.25), pytest.approx(1 / 3))
    assert two.brier == pytest.approx((0.25**2 + 0.5**2 + 0) / 3)
    assert everything.brier == pytest.approx((one.brier + two.brier) / 2)


def test_no_samples_and_one_class_are_nan_and_none_in_json() -> None:
    empty = score(torch.empty(0), torch.empty(0))
    assert empty.samples == 0 and math.isnan(empty.ece) and math.isnan(empty.auroc)
    assert score(torch.tensor([0.5]), torch.tensor([1])).as_dict()["auroc"] is None


@pytest.mark.parametrize(
    "prediction, outcome, bins, message",
    [
        ([0.5, 1.5], [0, 1], 15, "prediction: expected probabilities in"),
        ([0.5, math.nan], [0, 1], 15, "prediction: expected probabilities in"),
        ([0.5, 0.5], [0, 2], 15, "outcome: expected 0 or 1, got 2"),
        ([0.5, 0.5], [0], 15, "outcome: expected shape"),
        ([0.5], [0], 0, "bins: expected an int"),
    ],
)
def test_bad_input_is_refused(prediction: list[float], outcome: list[int], bins: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(torch.tensor(prediction), torch.tensor(outcome), bins)


def test_acceptance_counts_have_their_own_denominators() -> None:
    """Three active requests of γ = 4, trimmed to 4, 1 and 0 drafts; the fourth is inactive."""
    lens, correct = torch.tensor([5, 2, 1, 0]), torch.tensor([2, 1, 0, 0])
    counts = count_acceptance(correct, lens, gamma=4, visible=torch.tensor([3, 1, 1, 0]))
    assert counts == AcceptanceCounts(3, 12, 5, 3, 6, 5)
    assert (counts.acceptance_rate, counts.accepted_of_drafted, counts.accept_length) == (3 / 5, 3 / 12, 2.0)
    # What (AL - 1) / γ would have claimed is the rate over all drafts, verified or not: not the acceptance rate.
    assert (counts.accept_length - 1) / 4 != counts.acceptance_rate
    both = counts + counts + AcceptanceCounts()
    assert (both.proposed, both.accepted, both.visible) == (10, 6, 10)


def test_a_missing_denominator_stays_missing() -> None:
    unknown = AcceptanceCounts(request_steps=1, drafted=7, proposed=None, accepted=2, committed=3, visible=None)
    assert unknown.acceptance_rate is None
    assert (unknown + AcceptanceCounts(1, 7, 7, 1, 2, 2)).acceptance_rate is None
    assert AcceptanceCounts().acceptance_rate is None and AcceptanceCounts().accept_length is None


def test_more_accepted_than_verified_is_refused() -> None:
    with pytest.raises(ValueError, match=r"correct_len\[1\]: expected at most verify_len - 1 = 1 .*, got 2"):
        count_acceptance(torch.tensor([0, 2]), torch.tensor([1, 2]), gamma=4)
    with pytest.raises(ValueError, match=r"correct_len: expected shape \[2\], got \[1\]"):
        count_acceptance(torch.tensor([0]), torch.tensor([1, 2]), gamma=4)


def test_visible_progress_stops_at_the_stop_token_and_the_limit() -> None:
    eos = 9
    tokens = torch.tensor([[1, 2, 3, 4], [1, eos, 3, 4], [1, 2, 3, eos], [eos, 2, eos, 4], [1, 2, 3, 4], [1, 2, 3, 4]])
    commit = torch.tensor([3, 4, 3, 2, 4, 0], dtype=torch.int32)
    remaining = torch.tensor([9, 9, 9, 9, 2, 5])
    stops = torch.tensor([eos, 77])
    assert visible_len(tokens, commit).tolist() == commit.tolist()
    # The third row's stop token lies past what was committed.
    assert visible_len(tokens, commit, stops, remaining).tolist() == [3, 1, 3, 0, 2, 0]
    assert visible_len(tokens, commit, stops, remaining, include_stop=True).tolist() == [3, 2, 3, 1, 2, 0]
    # The limit falls before the stop token, and onto it.
    limits = torch.tensor([1, 1])
    assert visible_len(tokens[1:3], commit[1:3], stops, limits, include_stop=True).tolist() == [1, 1]


def test_tau_bias_by_bucket() -> None:
    bias = TauBias()
    for predicted, actual in ((10.0, 9), (12.0, 13), (11.0, 8)):
        bias.add(Bucket(8, 1, "greedy", 32), predicted, actual)
    bias.add(Bucket(8, 2, "sampled", -1), 4.0, 6)
    other = TauBias()
    other.add(Bucket(16, 1, "greedy", 32), 20.0, 20)
    bias.merge(other)
    greedy, sampled = bias.by("acceptance")
    assert greedy["acceptance"] == "greedy" and greedy["steps"] == 4
    assert greedy["bias"] == pytest.approx((-1 + 1 - 3 + 0) / 4)
    assert sampled["bias"] == 2.0 and sampled["standard_error"] is None
    (first,) = [b for b in bias.by("batch", "lag") if (b["batch"], b["lag"]) == (8, 1)]
    assert (first["predicted"], first["actual"], first["bias"]) == (11.0, 10.0, -1.0)
    # The sample deviation of -1, 1, -3 over the root of 3.
    assert first["standard_error"] == pytest.approx(2 / math.sqrt(3))
    assert bias.by()[0]["steps"] == 5
    assert [b["tier"] for b in bias.by("tier")] == [-1, 32]
    with pytest.raises(ValueError, match="names: expected some of batch, lag, acceptance, tier, got 'size'"):
        bias.by("size")
    with pytest.raises(ValueError, match="expected finite numbers"):
        bias.add(Bucket(8, 1, "greedy", 32), math.nan, 1)
