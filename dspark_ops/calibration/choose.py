"""The ladder: which calibration earns its place, from the simplest on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .samples import Samples

if TYPE_CHECKING:
    from .compare import Candidate

MARGIN = 0.005  # a difference in throughput that matters


def choose(candidates: Sequence[Candidate], samples: Samples) -> tuple[str, list[str]]:
    """Up the ladder: each candidate against the best so far, by throughput, then by Brier.

    It wins if its mean paired throughput is more than `MARGIN` higher, loses if it is more than `MARGIN` lower, and
    between these wins if its Brier score is lower by more than two standard errors, paired by request.
    """
    best, reasons = candidates[0], []
    for new in candidates[1:]:
        gain, change, error = _gain(best, new), *_brier_change(best, new, samples)
        wins = gain > 0 if gain is not None and abs(gain) > MARGIN else change < -2 * error
        text = [] if gain is None else [f"throughput {gain:+.2%}"]
        text.append(f"Brier {change:+.5f} ± {error:.5f}")
        reasons.append(f"{new.name} against {best.name}: {', '.join(text)}: {(new if wins else best).name}")
        best = new if wins else best
    return best.name, reasons


def _gain(old: Candidate, new: Candidate) -> float | None:
    """Mean relative gain over the replays that both went through; None without replays."""
    pairs = [
        n / o - 1 for batch in old.throughput for o, n in zip(old.throughput[batch], new.throughput[batch], strict=True)
    ]
    return mean(pairs) if pairs else None


def _brier_change(old: Candidate, new: Candidate, samples: Samples) -> tuple[float, float]:
    """Mean change per step, and its standard error with requests as the independent unit."""
    outcome = samples.outcome.double()

    def error(c: Candidate) -> Tensor:
        return (c.confidence.double().cumprod(1) - outcome).square().mean(1)

    difference = error(new) - error(old)
    change = difference.mean()
    sums = torch.stack([(difference[rows] - change).sum() for rows in samples.requests()])
    return float(change), math.sqrt(float(sums.square().sum())) / len(samples)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean."""
    return sum(values) / len(values)
