"""Compares no calibration, STS, affine, and affine with a per-request offset on held-out requests, and picks one.

Requests are split in two halves; each half is judged by what was fitted on the other, so every step is predicted once,
by a calibration that never saw its request. The pick goes up the ladder from the simplest: a step up must earn its
place, by throughput first (that is what a calibration is for), by Brier where throughput cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..metrics import TauBias, score_conditional, score_cumulative
from .affine import fit_affine
from .offset import fit_affine_offset, follow_offsets, log_loss
from .samples import Samples
from .simulate import best_fixed, schedule, simulate, simulate_oracle
from .sts import fit_sts
from .tables import Calibration, identity

if TYPE_CHECKING:
    from ..cost.cells import CostCells

Fit = Callable[[Samples], Calibration]
Progress = Callable[[int, int], None]

CANDIDATES: dict[str, Fit] = {  # from the simplest on
    "none": lambda s: identity(s.gamma, s.acceptance),
    "sts": fit_sts,
    "affine": fit_affine,
    "affine + offset": fit_affine_offset,
}
MARGIN = 0.005  # a difference in throughput that matters
BATCHES = (8, 16, 32)
FOLDS = 2
NOTE = (
    "held out: two halves of the requests, each judged by what the other was fitted on; throughput: step resampling at "
    "the given cost, over the best fixed verify length in hindsight on the same steps"
)


@dataclass
class Candidate:
    """One calibration's held-out predictions and replays."""

    name: str
    confidence: Tensor  # float32 [S, γ], each row predicted by a fit that did not see its request
    fitted: list[Calibration] = field(default_factory=list)  # a fold each
    throughput: dict[int, list[float]] = field(default_factory=dict)  # batch -> over the best fixed, a replay each
    rows: dict[int, list[float]] = field(default_factory=dict)  # batch -> verified rows per request-step
    tau: TauBias = field(default_factory=TauBias)

    def summary(self, samples: Samples) -> dict[str, Any]:
        """Scores and throughput as plain data."""
        positions, everything = score_cumulative(self.confidence, samples.correct_len)
        conditional = score_conditional(self.confidence, samples.correct_len)
        return {
            "name": self.name,
            "cumulative": [s.as_dict() for s in positions],
            "conditional": [s.as_dict() for s in conditional],
            "brier": everything.brier,
            "log_loss": log_loss(self.confidence, samples.correct_len),
            "throughput": {
                batch: {
                    "over_best_fixed": _mean(ratios),
                    "least": min(ratios),
                    "most": max(ratios),
                    "rows_per_request": _mean(self.rows[batch]),
                }
                for batch, ratios in self.throughput.items()
            },
            "tau": self.tau.by("batch", "lag"),
        }


@dataclass
class Comparison:
    """What `compare` found. `ship` names the pick, `reasons` has a line per step of the ladder."""

    samples: Samples
    candidates: list[Candidate]
    ship: str
    reasons: list[str]
    oracle: dict[int, float]  # batch -> throughput of known outcomes over the best fixed
    fixed: dict[int, list[int]]  # batch -> best fixed verify length, a replay each

    def __getitem__(self, name: str) -> Candidate:
        return next(c for c in self.candidates if c.name == name)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        samples = self.samples
        return {
            "acceptance": samples.acceptance,
            "gamma": samples.gamma,
            "samples": len(samples),
            "requests": len(samples.requests()),
            "candidates": [c.summary(samples) for c in self.candidates],
            "oracle": self.oracle,
            "best_fixed_len": self.fixed,
            "ship": self.ship,
            "reasons": self.reasons,
            "note": NOTE,
        }


def compare(
    samples: Samples,
    cells: CostCells | None = None,
    batches: Sequence[int] = BATCHES,
    search: str = "history",
    orders: int = 3,
    progress: Progress | None = None,
    candidates: dict[str, Fit] | None = None,
) -> Comparison:
    """Fit, judge and replay every candidate on held-out requests; say which to ship.

    Args:
        samples: with `request`, at least two requests (and twice the largest batch, where costs are given).
        cells: step costs for the replay; None compares by Brier alone.
        batches: concurrent requests of the replays; empty with no cells.
        search: see `simulate`.
        orders: random orders of the requests, each a replay.
        progress: called with (done, total).
        candidates: name -> fit, from the simplest on. Default: `CANDIDATES`.
    """
    folds = _folds(samples)
    batches = batches if cells is not None else ()
    fits = CANDIDATES if candidates is None else candidates
    found = [Candidate(name, torch.empty(samples.logits.shape)) for name in fits]
    total, done = len(folds) * len(found) * (1 + len(batches) * orders), 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    for candidate in found:
        for judged, fitted in folds:
            calibration = fits[candidate.name](samples[fitted])
            candidate.fitted.append(calibration)
            candidate.confidence[judged] = follow_offsets(samples[judged], calibration)[0]
            tick()
    oracle: dict[int, float] = {}
    fixed: dict[int, list[int]] = {}
    for batch in batches:
        assert cells is not None
        width = samples.gamma + 1
        step_ns = cells.step_ns(batch, batch * width)
        tiers = torch.arange(2, 2 * width + 1, dtype=torch.int32) * batch // 2
        bounds: list[float] = []
        for fold, (judged, _) in enumerate(folds):
            held = samples[judged]
            for order in range(orders):
                steps = schedule(held, batch, order)
                length, best = best_fixed(held, steps, step_ns)
                fixed.setdefault(batch, []).append(length)
                bounds.append(simulate_oracle(held, steps, step_ns).tokens_per_second / best.tokens_per_second)
                for candidate in found:
                    run = simulate(held, steps, step_ns, candidate.fitted[fold], search, tiers)
                    ratio = run.tokens_per_second / best.tokens_per_second
                    candidate.throughput.setdefault(batch, []).append(ratio)
                    candidate.rows.setdefault(batch, []).append(run.rows / run.counts.request_steps)
                    candidate.tau.merge(run.tau)
                    tick()
        oracle[batch] = _mean(bounds)
    ship, reasons = choose(found, samples)
    return Comparison(samples, found, ship, reasons, oracle, fixed)


def _folds(samples: Samples) -> list[tuple[Tensor, Tensor]]:
    """(judged, fitted) rows of each fold; requests are dealt in turn, so that every domain is in every fold."""
    requests = samples.requests()
    if len(requests) < FOLDS:
        raise ValueError(f"samples: expected at least {FOLDS} requests to hold some out, got {len(requests)}")
    parts = [torch.cat(requests[f::FOLDS]) for f in range(FOLDS)]
    return [(part, torch.cat([p for p in parts if p is not part])) for part in parts]


def choose(candidates: Sequence[Candidate], samples: Samples) -> tuple[str, list[str]]:
    """Up the ladder: each candidate against the best so far, by throughput, then by Brier.

    It wins if its mean paired throughput is more than `MARGIN` higher, loses if it is more than `MARGIN` lower, and
    between these wins if its Brier score is lower by more than two standard errors, paired by request.
    """
    best, reasons = candidates[0], []
    for new in candidates[1:]:
        gain, change, error = _gain(best, new), *_brier_change(best, new, samples)
        by_throughput = gain is not None and abs(gain) > MARGIN
        wins = gain > 0 if by_throughput and gain is not None else change < -2 * error
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
    return _mean(pairs) if pairs else None


def _brier_change(old: Candidate, new: Candidate, samples: Samples) -> tuple[float, float]:
    """Mean change per step, and its standard error with requests as the independent unit."""
    outcome = samples.outcome.double()

    def error(c: Candidate) -> Tensor:
        return (c.confidence.double().cumprod(1) - outcome).square().mean(1)

    difference = error(new) - error(old)
    mean = difference.mean()
    sums = torch.stack([(difference[rows] - mean).sum() for rows in samples.requests()])
    return float(mean), math.sqrt(float(sums.square().sum())) / len(samples)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
