"""The per-request offset over recorded steps: what `update_offset` would have made of them, and its parameters.

Requests differ by more than a head can see (a domain, a style). One logit per request, learnt from its own outcomes,
catches that. It starts at 0, uses only the past and costs nothing: it is updated inside the accept launch.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import torch
from torch import Tensor

from .. import _checks
from ..metrics import score_cumulative
from ..ops.prefix_survival import prefix_survival
from .affine import fit_affine
from .samples import Samples
from .tables import AffineCalibration, Calibration, OffsetRule, Operands

# Steady learning rates, and forgetting over 20 to 100 steps.
ETAS = (0.02, 0.05, 0.1, 0.15, 0.2)
DECAYS = (1.0, 0.99, 0.97, 0.95)


def follow_offsets(samples: Samples, calibration: Calibration, observed: int | None = None) -> tuple[Tensor, Tensor]:
    """Run every request's offset through its steps with the operators themselves.

    Args:
        samples: with `request`.
        calibration: gives scale, bias and, in `offset_rule`, how the offset learns (None: it stays 0).
        observed: drafts that each step verifies, 1..γ; default γ. A planner that trims observes fewer.

    Returns:
        confidence float32 [S, γ] as predicted *before* each step's outcome, and the offset float32 [S] it used.
    """
    gamma, rule = samples.gamma, calibration.offset_rule
    if observed is not None:
        _checks.integer("observed", observed, 1, gamma)
    operands = calibration.operands()
    if rule is None:
        zeros = torch.zeros(len(samples))
        return _confidence(samples.logits, operands, zeros), zeros
    confidence, used = torch.empty(len(samples), gamma), torch.empty(len(samples))
    requests = sorted(samples.requests(), key=len, reverse=True)
    lens = torch.full((len(requests),), (gamma if observed is None else observed) + 1, dtype=torch.int32)
    correct = samples.correct_len.int()
    state = torch.zeros(len(requests))
    # All requests at once, a step at a time: the longer a request, the lower its slot.
    steps = torch.nn.utils.rnn.pad_sequence(requests, padding_value=-1)
    for rows in steps:
        rows = rows[rows >= 0]
        live = state[: len(rows)]
        used[rows] = live
        confidence[rows] = c = _confidence(samples.logits[rows], operands, live)
        rule.update(live, c, correct[rows], lens[: len(rows)])
    return confidence, used


def _confidence(logits: Tensor, operands: Operands, offset: Tensor) -> Tensor:
    out = torch.empty(logits.shape, dtype=torch.float32)
    prefix_survival(logits=logits, **operands, offset=offset, out_confidence=out)
    return out


def log_loss(confidence: Tensor, correct_len: Tensor) -> float:
    """Mean over steps of the log loss of the drafts that decided the step: -log P(correct_len)."""
    c = confidence.double().clamp(1e-9, 1 - 1e-9)
    k = torch.arange(c.shape[1])
    accepted = torch.where(k < correct_len[:, None], c.log(), 0.0).sum(1)
    rejected = torch.where(k == correct_len[:, None], torch.log1p(-c), 0.0).sum(1)
    return float(-(accepted + rejected).mean())


def fit_offset_rule(
    samples: Samples,
    calibration: AffineCalibration,
    etas: Sequence[float] = ETAS,
    decays: Sequence[float] = DECAYS,
    limit: float = 4.0,
) -> AffineCalibration:
    """`calibration` with the offset rule whose predictions have the least log loss on `samples`, the first of equals.

    The predictions are one step ahead, so nothing is judged on what it has seen; only two numbers are chosen.
    """
    rules = [OffsetRule(eta, decay, limit) for eta in etas for decay in decays]
    if not rules:
        raise ValueError("etas, decays: expected at least one of each")
    with_rule = [msgspec.structs.replace(calibration, offset=rule) for rule in rules]
    predicted = [follow_offsets(samples, c)[0] for c in with_rule]
    losses = [log_loss(c, samples.correct_len) for c in predicted]
    best = min(range(len(rules)), key=losses.__getitem__)
    after = [s.ece for s in score_cumulative(predicted[best], samples.correct_len)[0]]
    return msgspec.structs.replace(with_rule[best], ece_after=after)


def fit_affine_offset(samples: Samples, ridge: float = 1.0, dataset: str = "") -> AffineCalibration:
    """Scale, bias and offset rule for service together.

    Scale and bias are fitted, a rule is chosen, and both are fitted again with the offsets in place: once an offset
    tells requests apart, a logit has less left to tell, and its best scale is another.
    """
    first = fit_offset_rule(samples, fit_affine(samples, ridge))
    offset = follow_offsets(samples, first)[1]
    return fit_offset_rule(samples, fit_affine(samples, ridge, offset, dataset=dataset))
