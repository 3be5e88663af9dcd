"""Every budget and every policy on one timeline and one machine: the table of `dspark-ops report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..calibration.samples import GREEDY, SAMPLED
from ..calibration.tables import Calibration
from ..cost import StepCost
from ..trace import Trace
from .budgets import Budget, Fixed, Lengths, Oracle, Planned, Threshold
from .scenes import Scene
from .timeline import Moment

STATIC, CAPPED, COMPACT = "static", "cap-accept", "compact"
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass
class Run:
    """One policy's sums over a timeline. A verified draft was proposed to the target; a kept one was accepted."""

    policy: str
    budget: str
    steps: int = 0
    requests: int = 0  # request-steps
    rows: int = 0
    proposed: int = 0
    accepted: int = 0
    seconds: float = 0.0
    request_seconds: float = 0.0  # each step counted once per request in it
    predicted: list[float] = field(default_factory=list)  # tau by step, where predicted
    actual: list[int] = field(default_factory=list)

    def add(self, lengths: Lengths, correct_len: Tensor, width: int, cost: StepCost) -> None:
        """Count one step."""
        lens, requests = lengths.verify_lens, len(correct_len)
        accepted = int(torch.minimum(correct_len, lens - 1).sum())
        rows = int(lens.sum()) if self.policy == COMPACT else requests * width
        size = 1 << (requests * width).bit_length()
        seconds = 1e-9 * (cost.base(requests) + int(cost.row(size, num_reqs=requests)[rows]))
        self.steps += 1
        self.requests += requests
        self.rows += rows
        self.proposed += int(lens.sum()) - requests
        self.accepted += accepted
        self.seconds += seconds
        self.request_seconds += seconds * requests
        if lengths.predicted_tau is not None:
            self.predicted.append(lengths.predicted_tau)
            self.actual.append(requests + accepted)

    @property
    def tokens(self) -> int:
        """Committed tokens, each step's bonus included."""
        return self.requests + self.accepted

    @property
    def tokens_per_second(self) -> float:
        """Committed tokens per simulated second."""
        return self.tokens / self.seconds

    def summary(self) -> dict[str, Any]:
        """The figures of one line. accept_length counts the bonus; the acceptance rate never does."""
        predicted = sum(self.predicted)
        return {
            "policy": self.policy,
            "budget": self.budget,
            "steps": self.steps,
            "rows": self.rows,
            "accept_length": self.tokens / self.requests,
            "proposed": self.proposed,
            "accepted": self.accepted,
            "acceptance_rate": self.accepted / self.proposed if self.proposed else None,
            "tpot_ms": 1e3 * self.request_seconds / self.tokens,
            "tokens_per_second": self.tokens_per_second,
            "tau_bias": (sum(self.actual) - predicted) / predicted if predicted else None,
        }


@dataclass(frozen=True)
class Recorded:
    """What a replay takes from a trace: raw logits of one head, and how many drafts were accepted."""

    logits: Tensor  # float32 [S, γ]
    correct_len: Tensor  # int32 [S]

    @classmethod
    def of(cls, trace: Trace, head: str) -> Recorded:
        """The head's logits and the recorded outcome, greedy or sampled."""
        return cls(torch.from_numpy(getattr(trace, head)), torch.from_numpy(trace.correct_len.astype(np.int32)))

    @property
    def width(self) -> int:
        """N = γ + 1."""
        return self.logits.shape[1] + 1


def play(recorded: Recorded, moments: Sequence[Moment], budget: Budget, runs: Sequence[Run], cost: StepCost) -> None:
    """Take every step with lengths from `budget`; each run counts it under its own policy."""
    for moment in moments:
        logits, correct = recorded.logits[moment.rows], recorded.correct_len[moment.rows]
        lengths = budget.lengths(moment, logits, correct)
        for run in runs:
            run.add(lengths, correct, recorded.width, cost)


def planned_budgets(
    scene: Scene, slots: int, gamma: int, greedy: bool, calibrations: dict[str, Calibration]
) -> Iterator[tuple[str, Planned]]:
    """The planners to compare: cost model, lag, search, calibration. What would bias sampling is greedy's only."""
    for calibration in calibrations.values():
        calibration.check_serves(gamma, GREEDY if greedy else SAMPLED)
    graphs = scene.graphs(slots, gamma + 1)

    def planned(cost: StepCost, lag: int, search: str = "global", calibration: Calibration | None = None) -> Planned:
        return Planned(cost, slots, gamma, graphs, lag, search, calibration)

    yield "additive, lag 1", planned(scene.additive, 1)
    yield "tier, lag 1", planned(scene.truth, 1)
    yield "tier, lag 2", planned(scene.truth, 2)
    yield "tier, first_drop", planned(scene.truth, 0, "first_drop")
    if greedy:
        yield "tier, lag 0", planned(scene.truth, 0)
    for name, calibration in calibrations.items():
        yield f"tier, lag 1, {name}", planned(scene.truth, 1, calibration=calibration)


def study(
    recorded: Recorded,
    moments: Sequence[Moment],
    slots: int,
    scene: Scene,
    greedy: bool,
    calibrations: dict[str, Calibration] | None = None,
) -> list[Run]:
    """One run per line of the table, static first and the oracle last.

    The best fixed length and the best threshold are chosen in hindsight, on the very steps that they are judged by:
    what a planner has to beat is the best of its kind.
    """
    gamma, cost = recorded.width - 1, scene.truth
    static = Run(STATIC, f"all {gamma}")
    play(recorded, moments, Fixed(gamma), [static], cost)
    runs = [static]

    def best(candidates: list[tuple[Run, Budget]]) -> Run:
        for run, budget in candidates:
            play(recorded, moments, budget, [run], cost)
        return max((run for run, _ in candidates), key=lambda run: run.tokens_per_second)

    fixed: list[tuple[Run, Budget]] = [(Run(COMPACT, f"fixed {k}"), Fixed(k)) for k in range(gamma + 1)]
    runs.append(best(fixed))
    runs.append(best([(Run(COMPACT, f"threshold {t}"), Threshold(t)) for t in THRESHOLDS]))
    for name, budget in planned_budgets(scene, slots, gamma, greedy, calibrations or {}):
        own = [Run(COMPACT, name)]
        if name == "tier, lag 1":
            own.insert(0, Run(CAPPED, name))
        play(recorded, moments, budget, own, cost)
        runs += own
    oracle = Run(COMPACT, "oracle")
    play(recorded, moments, Oracle(cost), [oracle], cost)
    return [*runs, oracle]


def table(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The runs' figures, and each one's throughput over static's, the best fixed length's and the oracle's."""
    static, fixed, oracle = runs[0], runs[1], runs[-1]
    return [
        run.summary()
        | {
            f"over_{name}": run.tokens_per_second / other.tokens_per_second
            for name, other in (("static", static), ("best_fixed", fixed), ("oracle", oracle))
        }
        for run in runs
    ]
