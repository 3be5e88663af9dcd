"""Scores of predicted probabilities against outcomes: ECE, Brier, AUROC, and both means (host, float64).

Two predictions are scored. *Conditional*: c_k against "draft k was accepted", over the steps whose prefix before k was
accepted; it is what a calibration is fitted to. *Cumulative*: the product c_0 ... c_k against "the accepted prefix
covers k", over all steps; it is what a planner adds up, and what SGLang's STS fits.

ECE depends on its bins, so they are part of the figure: equal widths over [0, 1], 15 by default as in SGLang, a bin's
error weighted by its share of the samples. A perfect predictor does not score 0 on a finite sample; `ece_floor` says
what it would score.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

BINS = 15
_MARGIN = 1e-8  # SGLang's: 0 and 1 are moved this far inside


@dataclass(frozen=True)
class Score:
    """Scores of one prediction. `auroc` is NaN where only one outcome occurred, everything is without samples."""

    samples: int
    mean_prediction: float
    mean_outcome: float
    ece: float
    ece_floor: float  # expected ECE of these predictions if they were right and the samples independent
    brier: float
    auroc: float

    def as_dict(self) -> dict[str, float | None]:
        """Plain data for JSON, which has no NaN: None stands for it."""
        return {name: None if math.isnan(value) else value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class _Bins:
    """Sums by bin, float64 [bins]."""

    count: Tensor
    prediction: Tensor
    outcome: Tensor
    variance: Tensor  # of the outcome sum, if the predictions are right


def _pair(prediction: Tensor, outcome: Tensor) -> tuple[Tensor, Tensor]:
    """Both flat and in float64; predictions must be probabilities, outcomes 0 or 1."""
    if prediction.shape != outcome.shape:
        raise ValueError(f"outcome: expected shape {list(prediction.shape)}, got {list(outcome.shape)}")
    p, y = prediction.detach().double().flatten(), outcome.detach().double().flatten()
    for name, bad, expected in (
        ("prediction", ~((p >= 0) & (p <= 1)), "probabilities in [0, 1]"),
        ("outcome", (y != 0) & (y != 1), "0 or 1"),
    ):
        if bad.any():
            raise ValueError(f"{name}: expected {expected}, got {(p if name == 'prediction' else y)[bad][0].item()}")
    return p, y


def _bins(p: Tensor, y: Tensor, bins: int) -> _Bins:
    if not 1 <= bins <= 10_000:
        raise ValueError(f"bins: expected an int in [1, 10000], got {bins}")
    p = p.clamp(_MARGIN, 1 - _MARGIN)
    index = (p * bins).long().clamp_(0, bins - 1)
    sums = (torch.bincount(index, weights=w, minlength=bins) for w in (torch.ones_like(p), p, y, p * (1 - p)))
    return _Bins(*sums)


def _ece(b: _Bins) -> float:
    count = b.count.clamp_min(1)
    error = (b.prediction / count - b.outcome / count).abs()
    return float((error * b.count).sum() / b.count.sum())


def _ece_floor(b: _Bins) -> float:
    # A bin's error is near normal around 0; its mean size is sqrt(2 / pi) of its deviation.
    return float(math.sqrt(2 / math.pi) * b.variance.sqrt().sum() / b.count.sum())


def expected_calibration_error(prediction: Tensor, outcome: Tensor, bins: int = BINS) -> float:
    """ECE = sum over bins of share · |mean prediction - mean outcome|; NaN without samples.

    Args:
        prediction: probabilities, any shape.
        outcome: 0, 1 or bool, the same shape.
        bins: equal widths over [0, 1].

    Raises ValueError for a value outside, or shapes that differ. Equal to SGLang's, bit for bit in float64.
    """
    return _ece(_bins(*_pair(prediction, outcome), bins))


def reliability(prediction: Tensor, outcome: Tensor, bins: int = BINS) -> list[tuple[int, float, float]]:
    """Per bin that has samples: how many, their mean prediction, their mean outcome (the points of a diagram)."""
    b = _bins(*_pair(prediction, outcome), bins)
    rows = zip(b.count.tolist(), b.prediction.tolist(), b.outcome.tolist(), strict=True)
    return [(int(n), p / n, y / n) for n, p, y in rows if n]


def brier(prediction: Tensor, outcome: Tensor) -> float:
    """Mean of (prediction - outcome)²; NaN without samples."""
    p, y = _pair(prediction, outcome)
    return float((p - y).square().mean())


def auroc(prediction: Tensor, outcome: Tensor) -> float:
    """P(a random positive is predicted above a random negative), a tie counting one half: exact, by midranks.

    NaN where one of the classes is empty.
    """
    p, y = _pair(prediction, outcome)
    positives = float(y.sum())
    negatives = len(y) - positives
    if positives == 0 or negatives == 0:
        return math.nan
    _, value, count = torch.unique(p, return_inverse=True, return_counts=True)
    last = count.cumsum(0).double()
    midrank = last - (count - 1) / 2
    rank_sum = float(midrank[value][y == 1].sum())  # of halves under 2^52: exact
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def score(prediction: Tensor, outcome: Tensor, bins: int = BINS) -> Score:
    """All scores of one prediction (see the functions above)."""
    p, y = _pair(prediction, outcome)
    b = _bins(p, y, bins)
    return Score(
        samples=len(p),
        mean_prediction=float(p.mean()),
        mean_outcome=float(y.mean()),
        ece=_ece(b),
        ece_floor=_ece_floor(b),
        brier=float((p - y).square().mean()),
        auroc=auroc(p, y),
    )


def prefix_outcome(correct_len: Tensor, gamma: int) -> Tensor:
    """bool [S, γ]: whether the accepted prefix covers draft k, from correct_len [S]."""
    return torch.arange(gamma, device=correct_len.device) < correct_len[:, None]


def score_conditional(confidence: Tensor, correct_len: Tensor, bins: int = BINS) -> list[Score]:
    """Per position: c_k against "draft k was accepted", over the steps that accepted every draft before k.

    Args:
        confidence: c, [S, γ].
        correct_len: accepted drafts, integer [S], not cut by a verify length.
    """
    gamma = confidence.shape[1]
    reached = [correct_len >= k for k in range(gamma)]
    return [score(confidence[m, k], (correct_len > k)[m], bins) for k, m in enumerate(reached)]


def score_cumulative(confidence: Tensor, correct_len: Tensor, bins: int = BINS) -> tuple[list[Score], Score]:
    """Per position, c_0 ... c_k against "the accepted prefix covers k"; then the same over all positions at once.

    Args: as `score_conditional`.
    """
    survival = confidence.double().cumprod(1)
    outcome = prefix_outcome(correct_len, confidence.shape[1])
    columns = [score(survival[:, k], outcome[:, k], bins) for k in range(confidence.shape[1])]
    return columns, score(survival, outcome, bins)
