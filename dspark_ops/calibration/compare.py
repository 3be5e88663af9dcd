"""Compares no calibration, STS, affine, and affine with a per-request offset on held-out requests, and picks one.

Requests are split in two halves; each half is judged by what was fitted on the other, so every step is predicted once,
by a calibration that never saw its request. The pick goes up the ladder from the simplest: a step up must earn its
place, by throughput first (that is what a calibration is for), by Brier where throughput cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from torch import Tensor

from ..metrics import TauBias, score_conditional, score_cumulative
from .affine import fit_affine
from .choose import choose, mean
from .offset import fit_affine_offset, follow_offsets, log_loss
from .samples import Samples
from .simulate import Run, Schedule, best_fixed, check_search, schedule, simulate, simulate_oracle
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
    "affine+offset": fit_affine_offset,
}
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
            "fitted": [_parameters(c) for c in self.fitted],
            "throughput": {
                batch: {
                    "over_best_fixed": mean(ratios),
                    "least": min(ratios),
                    "most": max(ratios),
                    "rows_per_request": mean(self.rows[batch]),
                }
                for batch, ratios in self.throughput.items()
            },
            "tau": self.tau.by("batch", "lag"),
        }


def _parameters(calibration: Calibration) -> dict[str, Any]:
    scale, bias = calibration.scale_bias()
    rule = calibration.offset_rule
    return {"scale": scale, "bias": bias, "offset": None if rule is None else msgspec.to_builtins(rule)}


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


@dataclass(frozen=True)
class _Replay:
    """One replay that every candidate goes through: a batch size, a held-out half, an order of its requests."""

    batch: int
    fold: int
    held: Samples
    steps: Schedule
    step_ns: Tensor
    tiers: Tensor
    fixed_len: int
    fixed: Run

    def over_fixed(self, run: Run) -> float:
        """Tokens per second over the best fixed length's, on these steps."""
        return run.tokens_per_second / self.fixed.tokens_per_second


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
        cells: step costs for the replays; None compares by Brier alone.
        batches: concurrent requests of the replays.
        search: see `simulate`.
        orders: random orders of the requests, each a replay.
        progress: called with (done, total).
        candidates: name -> fit, from the simplest on. Default: `CANDIDATES`.
    """
    check_search(search, samples.acceptance)
    folds = _folds(samples)
    replays = [] if cells is None else list(_replays(samples, folds, cells, batches, orders))
    fits = CANDIDATES if candidates is None else candidates
    found = [Candidate(name, torch.empty(samples.logits.shape)) for name in fits]
    total, done = len(found) * (len(folds) + len(replays)), 0
    for candidate in found:
        for judged, fitted in folds:
            calibration = fits[candidate.name](samples[fitted])
            candidate.fitted.append(calibration)
            candidate.confidence[judged] = follow_offsets(samples[judged], calibration)[0]
            done += 1
            if progress is not None:
                progress(done, total)
        for r in replays:
            run = simulate(r.held, r.steps, r.step_ns, candidate.fitted[r.fold], search, r.tiers)
            candidate.throughput.setdefault(r.batch, []).append(r.over_fixed(run))
            candidate.rows.setdefault(r.batch, []).append(run.rows / run.counts.request_steps)
            candidate.tau.merge(run.tau)
            done += 1
            if progress is not None:
                progress(done, total)
    oracle: dict[int, list[float]] = {}
    fixed: dict[int, list[int]] = {}
    for r in replays:
        oracle.setdefault(r.batch, []).append(r.over_fixed(simulate_oracle(r.held, r.steps, r.step_ns)))
        fixed.setdefault(r.batch, []).append(r.fixed_len)
    ship, reasons = choose(found, samples)
    return Comparison(samples, found, ship, reasons, {b: mean(ratios) for b, ratios in oracle.items()}, fixed)


def _folds(samples: Samples) -> list[tuple[Tensor, Tensor]]:
    """(judged, fitted) rows of each fold; requests are dealt in turn, so that every domain is in every fold."""
    requests = samples.requests()
    if len(requests) < FOLDS:
        raise ValueError(f"samples: expected at least {FOLDS} requests to hold some out, got {len(requests)}")
    parts = [torch.cat(requests[f::FOLDS]) for f in range(FOLDS)]
    return [(part, torch.cat([p for p in parts if p is not part])) for part in parts]


def _replays(
    samples: Samples, folds: Sequence[tuple[Tensor, Tensor]], cells: CostCells, batches: Sequence[int], orders: int
) -> Iterator[_Replay]:
    width = samples.gamma + 1
    for batch in batches:
        for fold, (judged, _) in enumerate(folds):
            held = samples[judged]
            for order in range(orders):
                steps = schedule(held, batch, order)
                step_ns = cells.step_ns(batch, batch * width)
                # Every half batch of rows, only to file the bias of tau under.
                tiers = torch.arange(2, 2 * width + 1, dtype=torch.int32) * batch // 2
                yield _Replay(batch, fold, held, steps, step_ns, tiers, *best_fixed(held, steps, step_ns))
