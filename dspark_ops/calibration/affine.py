"""Fits scale and bias per position: penalised logistic regression on "accepted, given that the prefix was".

A temperature can only pull a probability towards one half; a head that is too sure of itself throughout needs a bias.
With both, calibration is a logistic regression of one variable: convex, solved by a few Newton steps.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..metrics import score_cumulative
from .samples import Samples
from .tables import AffineCalibration

_STEPS = 100
_TOLERANCE = 1e-7  # of a step; the result is rounded to float32


def newton(x: Tensor, y: Tensor, given: Tensor, ridge: float, prior: Tensor) -> Tensor:
    """argmin over w of sum of log(1 + exp(m)) - y·m + ridge/2 · |w - prior|², m = x @ w + given; float64.

    Each Newton step is halved until the loss falls, so it converges from anywhere; `ridge` > 0 makes the minimum unique
    and finite even where the outcomes are all alike.
    """

    def loss(w: Tensor) -> Tensor:
        m = x @ w + given
        return (torch.nn.functional.softplus(m) - y * m).sum() + ridge / 2 * (w - prior).square().sum()

    w, current = prior, loss(prior)
    for _ in range(_STEPS):
        p = torch.sigmoid(x @ w + given)
        gradient = x.T @ (p - y) + ridge * (w - prior)
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + ridge * torch.eye(len(w), dtype=x.dtype)
        step = torch.linalg.solve(hessian, gradient)
        while float(step.abs().max()) > _TOLERANCE and not (trial := loss(w - step)) < current:
            step = step / 2
        if float(step.abs().max()) <= _TOLERANCE:
            break
        w, current = w - step, trial
    return w


def _position(z: Tensor, y: Tensor, given: Tensor, ridge: float, prior: Tensor) -> Tensor:
    """(scale, bias) of one position; a scale under 0 is 0, the bias then fitted alone (the problem is convex)."""
    ones = torch.ones_like(z)
    w = newton(torch.stack([z, ones], 1), y, given, ridge, prior)
    if w[0] < 0:
        bias = newton(ones[:, None], y, given, ridge, prior[1:])
        w = torch.cat([torch.zeros_like(bias), bias])
    return w


def fit_affine(
    samples: Samples, ridge: float = 1.0, offset: Tensor | None = None, shared_scale: bool = False, dataset: str = ""
) -> AffineCalibration:
    """Scale and bias per position.

    Position k is fitted on the steps that accepted every draft before k (deep positions have few), and is drawn towards
    position k - 1's result, the first towards the identity: ``ridge`` counts as so many samples of unit information.
    The result is rounded to float32, which is what the operators use. Deterministic.

    Args:
        samples: at least one.
        ridge: in [1e-6, 1e6].
        offset: float [S], added to every logit and not fitted: what requests' offsets were at each step.
        shared_scale: one scale for all positions (and a bias each); drawn towards the identity.
        dataset: a name for the file.
    """
    if not len(samples):
        raise ValueError("samples: expected at least one, got none")
    if not 1e-6 <= ridge <= 1e6:
        raise ValueError(f"ridge: expected a number in [1e-06, 1e+06], got {ridge}")
    if offset is not None and list(offset.shape) != [len(samples)]:
        raise ValueError(f"offset: expected shape [{len(samples)}], got {list(offset.shape)}")
    logits = samples.logits.double()
    given = torch.zeros(len(samples), dtype=torch.float64) if offset is None else offset.double()
    fit = _shared if shared_scale else _separate
    scale, bias = fit(logits, samples.correct_len, given, ridge).float().T
    before = score_cumulative(torch.sigmoid(logits), samples.correct_len)[0]
    after = score_cumulative(torch.sigmoid(scale * logits + bias + given[:, None]), samples.correct_len)[0]
    return AffineCalibration(
        scale=scale.tolist(),
        bias=bias.tolist(),
        acceptance=samples.acceptance,
        dataset=dataset,
        num_samples=len(samples),
        ece_before=[s.ece for s in before],
        ece_after=[s.ece for s in after],
    )


def _separate(logits: Tensor, correct: Tensor, given: Tensor, ridge: float) -> Tensor:
    """[γ, 2]: scale and bias of each position."""
    rows = []
    prior = torch.tensor([1.0, 0.0], dtype=torch.float64)
    for k in range(logits.shape[1]):
        reached = correct >= k
        prior = _position(logits[reached, k], (correct[reached] > k).double(), given[reached], ridge, prior)
        rows.append(prior)
    return torch.stack(rows)


def _shared(logits: Tensor, correct: Tensor, given: Tensor, ridge: float) -> Tensor:
    """[γ, 2]: the same scale in every row."""
    gamma = logits.shape[1]
    step, k = torch.nonzero(correct[:, None] >= torch.arange(gamma), as_tuple=True)
    x = torch.cat([logits[step, k, None], torch.nn.functional.one_hot(k, gamma).double()], 1)
    prior = torch.zeros(gamma + 1, dtype=torch.float64)
    prior[0] = 1
    w = newton(x, (correct[step] > k).double(), given[step], ridge, prior)
    return torch.stack([w[:1].clamp(min=0).expand(gamma), w[1:]], 1)
