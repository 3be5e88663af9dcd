"""The fits: known parameters are found again, edge cases stay finite, offsets use only the past."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import dspark_ops
from dspark_ops._threads import one_thread
from dspark_ops.calibration import (
    AffineCalibration,
    OffsetRule,
    Samples,
    StsCalibration,
    fit_affine,
    fit_affine_offset,
    fit_offset_rule,
    fit_sts,
    follow_offsets,
    identity,
)
from dspark_ops.calibration.affine import newton
from dspark_ops.calibration.offset import log_loss
from dspark_ops.metrics import score_cumulative


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


def synthetic(scale: list[float], bias: list[float], steps: int = 4000, spread: float = 0.0, seed: int = 0) -> Samples:
    """Requests of 40 steps each whose drafts are accepted with sigmoid(scale·z + bias + the request's own offset)."""
    g = torch.Generator().manual_seed(seed)
    request = torch.arange(steps) // 40
    own = spread * torch.randn(int(request.max()) + 1, generator=g)
    z = torch.randn(steps, len(scale), generator=g)
    chance = torch.sigmoid(torch.tensor(scale) * z + torch.tensor(bias) + own[request][:, None])
    accepted = torch.rand(z.shape, generator=g) < chance
    return Samples(z, accepted.long().cumprod(1).sum(1), "greedy", request)


def test_affine_finds_the_parameters() -> None:
    fitted = fit_affine(synthetic([0.7, 1.5], [-0.5, 0.8], steps=40_000))
    assert torch.allclose(torch.tensor(fitted.scale), torch.tensor([0.7, 1.5]), atol=0.06)
    assert torch.allclose(torch.tensor(fitted.bias), torch.tensor([-0.5, 0.8]), atol=0.06)
    assert max(fitted.ece_after) < 0.01 < max(fitted.ece_before)


def test_one_scale_for_all_positions() -> None:
    fitted = fit_affine(synthetic([0.7, 0.7], [-0.5, 0.8], steps=40_000), shared_scale=True)
    assert fitted.scale[0] == fitted.scale[1] == pytest.approx(0.7, abs=0.05)
    assert list(fitted.bias) == pytest.approx([-0.5, 0.8], abs=0.06)


def test_newton_is_at_a_stationary_point_of_the_penalised_loss() -> None:
    g = torch.Generator().manual_seed(3)
    x = torch.randn(200, 3, generator=g, dtype=torch.float64)
    y = (torch.rand(200, generator=g) < 0.3).double()
    given, prior = torch.randn(200, generator=g, dtype=torch.float64), torch.tensor([1.0, 0.0, -2.0]).double()
    w = newton(x, y, given, 2.5, prior).requires_grad_()
    m = x @ w + given
    loss = torch.nn.functional.binary_cross_entropy_with_logits(m, y, reduction="sum")
    (loss + 2.5 / 2 * (w - prior).square().sum()).backward()
    assert w.grad is not None and float(w.grad.abs().max()) < 1e-4


@pytest.mark.parametrize("correct", [0, 1, 2])
def test_outcomes_that_are_all_alike_stay_finite(correct: int) -> None:
    fitted = fit_affine(Samples(torch.randn(50, 2), torch.full((50,), correct), "greedy"))
    assert all(0 <= s < 10 for s in fitted.scale) and all(abs(b) < 10 for b in fitted.bias)
    # Nothing at all is known of a position that was never reached: it follows the one before.
    if correct == 0:
        assert (fitted.scale[1], fitted.bias[1]) == (fitted.scale[0], fitted.bias[0])


def test_a_separable_position_and_a_huge_logit_stay_finite() -> None:
    z = torch.tensor([[-1e4], [-1.0], [1.0], [1e4]])
    fitted = fit_affine(Samples(z, torch.tensor([0, 0, 1, 1]), "greedy"), ridge=1e-3)
    assert 0 < fitted.scale[0] < 1e3


def test_a_head_that_ranks_the_wrong_way_gets_scale_zero() -> None:
    fitted = fit_affine(synthetic([-2.0], [0.5]), ridge=1e-3)
    assert fitted.scale == (0.0,)
    rate = synthetic([-2.0], [0.5]).outcome.double().mean()
    assert fitted.bias[0] == pytest.approx(float(torch.logit(rate)), abs=1e-3)


def test_ridge_draws_towards_the_identity() -> None:
    few = synthetic([0.2], [-2.0], steps=40)
    loose, tight = fit_affine(few, ridge=1e-3), fit_affine(few, ridge=1e5)
    assert abs(tight.scale[0] - 1) < 0.01 < abs(loose.scale[0] - 1)
    assert abs(tight.bias[0]) < 0.01 < abs(loose.bias[0])


def test_a_known_offset_is_not_fitted_again() -> None:
    samples = synthetic([1.0], [0.0], steps=20_000)
    offset = samples.logits[:, 0] * 0 + 2.0
    assert fit_affine(samples, offset=offset).bias[0] == pytest.approx(fit_affine(samples).bias[0] - 2.0, abs=0.01)


def test_sts_picks_the_first_of_equal_temperatures_and_checks_its_grid() -> None:
    zeros = Samples(torch.zeros(4, 1), torch.tensor([0, 1, 0, 1]), "sampled")
    fitted = fit_sts(zeros, torch.tensor([3.0, 2.0]))
    assert (list(fitted.temperatures), fitted.acceptance) == ([3.0], "sampled")
    for grid in (torch.tensor([]), torch.tensor([1.0, 0.0])):
        with pytest.raises(ValueError, match="grid: expected positive temperatures"):
            fit_sts(zeros, grid)


@pytest.mark.parametrize("fit", [fit_sts, fit_affine, fit_affine_offset])
def test_a_fit_is_deterministic_keeps_the_event_and_needs_samples(fit) -> None:  # type: ignore[no-untyped-def]
    samples = synthetic([0.7, 1.5], [-0.5, 0.8], steps=400)
    assert fit(samples) == fit(samples)
    sampled = Samples(samples.logits, samples.correct_len, "sampled", samples.request)
    assert fit(sampled).acceptance == "sampled"
    with pytest.raises(ValueError, match="samples: expected at least one"):
        fit(samples[torch.zeros(0, dtype=torch.long)])


def test_follow_offsets_is_the_operator_one_request_at_a_time() -> None:
    samples = synthetic([0.7, 1.5], [-0.5, 0.8], steps=200, spread=1.0)
    shuffled = samples[torch.randperm(200, generator=torch.Generator().manual_seed(2))]
    calibration = AffineCalibration(
        scale=[0.7, 1.5], bias=[-0.5, 0.8], acceptance="greedy", offset=OffsetRule(0.3, 0.9, 0.8)
    )
    for observed in (None, 1):
        confidence, used = follow_offsets(shuffled, calibration, observed)
        for rows in shuffled.requests():
            offset = torch.zeros(1)
            for row in rows.tolist():
                assert used[row] == offset[0]
                c = torch.empty(1, 2)
                dspark_ops.prefix_survival(
                    logits=shuffled.logits[row : row + 1],
                    offset=offset,
                    out_confidence=c,
                    **calibration.operands(),
                )
                assert torch.equal(confidence[row], c[0])
                verified = torch.tensor([3 if observed is None else observed + 1], dtype=torch.int32)
                dspark_ops.update_offset(
                    offset, c, shuffled.correct_len[row : row + 1].int(), verified, eta=0.3, decay=0.9, limit=0.8
                )
        assert float(used.abs().max()) <= 0.800001


def test_observed_drafts_are_checked() -> None:
    samples = synthetic([1.0], [0.0], steps=40)
    with pytest.raises(ValueError, match=r"observed: expected an int in \[1, 1\], got 2"):
        follow_offsets(samples, fit_affine(samples), observed=2)


def test_offsets_do_not_look_ahead() -> None:
    samples = synthetic([1.0], [0.0], steps=80, spread=1.0)
    calibration = AffineCalibration(scale=[1.0], bias=[0.0], acceptance="greedy", offset=OffsetRule(0.2))
    before = follow_offsets(samples, calibration)[0]
    changed = samples.correct_len.clone()
    changed[20] = 1 - changed[20]
    after = follow_offsets(Samples(samples.logits, changed, "greedy", samples.request), calibration)[0]
    assert torch.equal(before[:21], after[:21]) and torch.equal(before[40:], after[40:])
    assert not torch.equal(before[21], after[21])


def test_the_offset_helps_where_requests_differ_and_is_small_where_they_do_not() -> None:
    shape: tuple[list[float], list[float]] = ([0.7, 1.5], [-0.5, 0.8])
    for spread, helps in ((1.5, True), (0.0, False)):
        fitted = fit_affine_offset(synthetic(*shape, spread=spread, seed=1))
        held = synthetic(*shape, spread=spread, seed=2)
        without, with_offset = (
            log_loss(follow_offsets(held, c)[0], held.correct_len)
            for c in (fit_affine(synthetic(*shape, spread=spread, seed=1)), fitted)
        )
        assert fitted.offset is not None
        assert with_offset < 0.95 * without if helps else fitted.offset.eta == 0.02 and with_offset < 1.01 * without


def test_the_rule_of_least_log_loss_is_chosen() -> None:
    samples = synthetic([1.0], [0.0], spread=1.5)
    affine = fit_affine(samples)
    chosen = fit_offset_rule(samples, affine, etas=(0.001, 0.2, 5.0), decays=(1.0,)).offset
    assert chosen is not None and chosen.eta == 0.2
    with pytest.raises(ValueError, match="etas, decays"):
        fit_offset_rule(samples, affine, etas=())


def test_log_loss_by_hand() -> None:
    confidence = torch.tensor([[0.5, 0.2, 0.9], [0.25, 0.5, 0.5]])
    found = log_loss(confidence, torch.tensor([1, 3]))
    want = -(torch.tensor([0.5 * 0.8, 0.25 * 0.5 * 0.5]).double().log()).mean()
    assert found == pytest.approx(float(want), rel=1e-6)


def score_of(calibration: StsCalibration | AffineCalibration, samples: Samples) -> float:
    return score_cumulative(follow_offsets(samples, calibration)[0], samples.correct_len)[1].brier


def test_a_bias_is_what_temperatures_cannot_give() -> None:
    """A head that is too sure of itself by a constant: STS lowers the ECE, at a price that affine does not pay."""
    samples = synthetic([1.0, 1.0], [-1.0, -1.0])
    none, sts, affine = (score_of(c, samples) for c in (identity(2, "greedy"), fit_sts(samples), fit_affine(samples)))
    assert affine < 0.95 * min(none, sts)


@pytest.mark.parametrize(
    "logits, correct, message",
    [
        (torch.zeros(2, 3), torch.tensor([0, 4]), r"correct_len: expected values in \[0, 3\]"),
        (torch.zeros(2, 3), torch.tensor([0.0, 1.0]), "correct_len: expected integers of shape"),
        (torch.zeros(2, 3), torch.tensor([0]), "correct_len: expected integers of shape"),
        (torch.zeros(2, 0), torch.tensor([0, 0]), "logits: expected float"),
        (torch.zeros(2, 3, dtype=torch.int64), torch.tensor([0, 0]), "logits: expected float"),
        (torch.full((2, 3), torch.nan), torch.tensor([0, 0]), "logits: expected finite values"),
    ],
)
def test_bad_samples_are_refused(logits: Tensor, correct: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Samples(logits, correct, "greedy")


def test_different_events_and_widths_do_not_mix() -> None:
    greedy = Samples(torch.zeros(1, 2), torch.tensor([0]), "greedy")
    sampled = Samples(torch.zeros(1, 2), torch.tensor([0]), "sampled")
    with pytest.raises(ValueError, match="greedy and sampled acceptance are different events"):
        Samples.concatenate([greedy, sampled])
    with pytest.raises(ValueError, match="expected γ = 2 in every part, got 3"):
        Samples.concatenate([greedy, Samples(torch.zeros(1, 3), torch.tensor([0]), "greedy")])
    with pytest.raises(ValueError, match="acceptance: expected one of"):
        Samples(torch.zeros(1, 2), torch.tensor([0]), "both")
    with pytest.raises(ValueError, match="expected to know the request"):
        greedy.requests()
