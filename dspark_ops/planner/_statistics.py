"""What was predicted and what came, step by step: kept on the host, in plain numbers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

import msgspec

from ._decision import Decision


class StepRecord(msgspec.Struct, frozen=True):
    """One step of one rank. What the runtime did not report is None."""

    reason: str
    requests: int
    rows: int  # verified here, padding not counted
    trimmed_rows: int  # that a full verification would have added
    tier: int  # rows of the graph, -1 eager
    predicted_tau: float
    actual_tau: int | None
    predicted_ns: int
    actual_ns: int | None


def _bias(pairs: Iterable[tuple[float, float | None]]) -> dict[str, float | None]:
    """Mean predicted and actual of the pairs that have both, and (actual - predicted) / predicted of their sums."""
    known = [(predicted, actual) for predicted, actual in pairs if predicted > 0 and actual is not None]
    if not known:
        return {"predicted": None, "actual": None, "bias": None}
    predicted, actual = (sum(column) / len(known) for column in zip(*known, strict=True))
    return {"predicted": predicted, "actual": actual, "bias": (actual - predicted) / predicted}


class Statistics:
    """The last `keep` steps, as `StepRecord`s in `steps`, and what they add up to."""

    def __init__(self, keep: int) -> None:
        self.steps: deque[StepRecord] = deque(maxlen=keep)

    def record(self, decision: Decision, rows: int, tokens: int | None, step_ns: int | None) -> None:
        """Add one finished step."""
        self.steps.append(
            StepRecord(
                decision.reason, decision.slots.shape[0], rows, decision.full_rows - rows,
                decision.graph[0] if decision.graph else -1, decision.predicted_tau, tokens, decision.predicted_ns,
                step_ns,
            )
        )  # fmt: skip

    def summary(self) -> dict[str, object]:
        """Totals of the kept steps; tau and ns per step, predicted and actual, over the steps where both are known."""
        steps = self.steps
        return {
            "steps": len(steps),
            "requests": sum(s.requests for s in steps),
            "rows": sum(s.rows for s in steps),
            "trimmed_rows": sum(s.trimmed_rows for s in steps),
            "tokens": sum(s.actual_tau or 0 for s in steps),
            "tau": _bias((s.predicted_tau, s.actual_tau) for s in steps),
            "ns": _bias((s.predicted_ns, s.actual_ns) for s in steps),
            "reasons": dict(Counter(s.reason for s in steps)),
            "tiers": dict(sorted(Counter(s.tier for s in steps).items())),
        }
