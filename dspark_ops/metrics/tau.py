"""The bias of tau: committed minus predicted tokens of a step, by what may cause it.

A planner is right on average when E[actual - predicted] is 0 in every bucket that matters: batch size, lag of the
confidences that set the budget, acceptance mode, tier. `predicted` is ``stats[3] / 2^43`` of the executed plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple


class Bucket(NamedTuple):
    """What a step's bias is filed under. `tier` is the captured size, -1 for an eager step."""

    batch: int
    lag: int
    acceptance: str  # "greedy" or "sampled"
    tier: int


@dataclass
class _Sums:
    steps: int = 0
    predicted: float = 0.0
    actual: float = 0.0
    squares: float = 0.0  # of the differences

    def add(self, other: _Sums) -> None:
        self.steps += other.steps
        self.predicted += other.predicted
        self.actual += other.actual
        self.squares += other.squares

    def summary(self) -> dict[str, Any]:
        bias = (self.actual - self.predicted) / self.steps
        variance = max(0.0, self.squares / self.steps - bias * bias)
        return {
            "steps": self.steps,
            "predicted": self.predicted / self.steps,
            "actual": self.actual / self.steps,
            "bias": bias,
            "standard_error": math.sqrt(variance / (self.steps - 1)) if self.steps > 1 else None,
        }


class TauBias:
    """Collects predicted and actual tau of steps; `by()` tells the bias per bucket.

    The standard error takes steps as independent. A request's steps are not quite: read it as a lower bound.
    """

    def __init__(self) -> None:
        self._buckets: dict[Bucket, _Sums] = {}

    def add(self, bucket: Bucket, predicted: float, actual: float) -> None:
        """Count one step: predicted and actually committed tokens of the whole batch."""
        if not (math.isfinite(predicted) and math.isfinite(actual)):
            raise ValueError(f"predicted, actual: expected finite numbers, got {predicted}, {actual}")
        one = _Sums(1, predicted, actual, (actual - predicted) ** 2)
        self._buckets.setdefault(bucket, _Sums()).add(one)

    def merge(self, other: TauBias) -> None:
        """Add what another collector (a rank, a replay) has seen."""
        for bucket, sums in other._buckets.items():
            self._buckets.setdefault(bucket, _Sums()).add(sums)

    def by(self, *names: str) -> list[dict[str, Any]]:
        """Per combination of these fields of `Bucket` (none: over everything), ascending.

        Each: the fields, then steps, predicted and actual (tokens per step), bias = E[actual - predicted] and its
        standard_error (None for a single step).
        """
        unknown = [n for n in names if n not in Bucket._fields]
        if unknown:
            raise ValueError(f"names: expected some of {', '.join(Bucket._fields)}, got {unknown[0]!r}")
        groups: dict[tuple[Any, ...], _Sums] = {}
        for bucket, sums in self._buckets.items():
            groups.setdefault(tuple(getattr(bucket, n) for n in names), _Sums()).add(sums)
        return [dict(zip(names, key, strict=True)) | groups[key].summary() for key in sorted(groups)]
