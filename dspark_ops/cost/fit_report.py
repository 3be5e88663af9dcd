"""How well a table tells the measured times, and what a planner loses by it (`report`).

A fit can look good on average and still be wrong where it matters: just past a captured tier. So beside RMS and R² it
is judged by its error at the rows around each tier, and by the rows that it would choose: their throughput at the
*measured* time, against the best rows at the measured times. Among the rows that were measured that needs no
assumption, but a planner may choose any. The time of the others is taken to be that of their tier, or past the tiers to
lie on the line between their neighbours; as the tier fit says the same, that loss is 0 for it by construction, and its
error on cells that it did not see is what judges it.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .cells import Cell, CostCells, medians
from .fit import fit_table, known_tiers, tier_group
from .table import CostTable

Survival = Callable[[int], Tensor]  # requests -> survival [B, γ]

_HELD_OUT = 64
OFFSETS = (-2, -1, 0, 1, 2)


@dataclass(frozen=True)
class Quality:
    """Measured against predicted times. Relative errors are of the measured time."""

    rms_seconds: float
    r2: float | None  # None where all measured times are equal
    mean_relative_error: float
    worst_relative_error: float

    @classmethod
    def of(cls, measured: Sequence[float], predicted: Sequence[float]) -> Quality:
        """Of pairs, at least one."""
        residuals = [t - p for t, p in zip(measured, predicted, strict=True)]
        relative = [abs(r) / t for r, t in zip(residuals, measured, strict=True)]
        left = sum(r * r for r in residuals)
        mean = statistics.fmean(measured)
        spread = sum((t - mean) ** 2 for t in measured)
        return cls(
            rms_seconds=(left / len(residuals)) ** 0.5,
            r2=1.0 - left / spread if spread > 0.0 else None,
            mean_relative_error=statistics.fmean(relative),
            worst_relative_error=max(relative),
        )


@dataclass(frozen=True)
class Choice:
    """The rows that a table chooses, and the best at the measured times."""

    num_reqs: int
    context: int | None
    chosen_rows: int
    best_rows: int
    throughput_lost: float  # share of the best tokens per second, 0 to 1


def mean_lost(choices: Sequence[Choice]) -> float:
    """Throughput lost, mean over the measured batches; 0 if none has a choice."""
    return statistics.fmean(choice.throughput_lost for choice in choices) if choices else 0.0


@dataclass(frozen=True)
class FitReport:
    """One table against the cells."""

    kind: str
    quality: Quality
    held_out: Quality | None  # of cells that the fit did not see; None if there are none such
    residuals: list[dict[str, Any]]  # per cell: bs, M, context, T, predicted
    tier_errors: dict[int, float | None]  # offset from a tier -> mean of predicted / measured - 1; None: not measured
    choices: list[Choice]  # among all rows
    measured_choices: list[Choice]  # among those that were measured
    is_flat: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        lost = {"throughput_lost": mean_lost(self.choices), "measured_lost": mean_lost(self.measured_choices)}
        return asdict(self) | lost


def predict(table: CostTable, cell: Cell, max_rows: int) -> float:
    """Seconds that the table gives this cell, its row being built for `max_rows`."""
    row = table.row(max_rows, num_reqs=cell.num_reqs)
    return (table.base(cell.num_reqs, cell.context_tokens) + int(row[cell.rows])) * 1e-9


def gamma_of(cells: CostCells) -> int:
    """γ as the cells say it, else the largest that their rows allow."""
    return cells.gamma or max(max(-(-cell.rows // cell.num_reqs) for cell in cells.samples) - 1, 1)


def spread_survival(num_reqs: int, gamma: int, low: float = 0.3, high: float = 0.95) -> Tensor:
    """A batch to choose budgets for where there is no trace: survival c_r^(k+1), c_r spread evenly, low to high."""
    share = (torch.arange(num_reqs, dtype=torch.float64) + 0.5) / num_reqs
    return (low + (high - low) * share)[:, None] ** torch.arange(1, gamma + 1)


def expected_tokens(survival: Tensor) -> list[float]:
    """Expected tokens of a step by its rows, B to B * N rows, the best drafts first (index 0 is B rows)."""
    best_first = survival.flatten().double().sort(descending=True).values
    tokens = torch.cat([torch.zeros(1, dtype=torch.float64), best_first]).cumsum(0) + survival.shape[0]
    return tokens.tolist()


def _times(own: Sequence[Cell], tiers: Sequence[int], measured_only: bool) -> dict[int, float]:
    """Measured seconds by rows; of all rows from the least to the most measured ones, unless a tier is missing."""
    points = dict(medians(own, lambda cell: cell.rows))
    if measured_only:
        return points
    try:
        row = tier_group(own, tiers).row(max(points))
    except ValueError:
        return points
    return {rows: int(row[rows]) * 1e-9 for rows in range(min(points), max(points) + 1)}


def _choices(
    table: CostTable, cells: CostCells, tiers: Sequence[int], survival_of: Survival, measured_only: bool
) -> list[Choice]:
    batches: dict[tuple[int, int | None], list[Cell]] = defaultdict(list)
    for cell in cells.samples:
        batches[cell.num_reqs, cell.context].append(cell)
    found = []
    for (bs, context), own in batches.items():
        tokens = expected_tokens(survival_of(bs))
        rates, predicted = {}, {}
        for rows, seconds in _times(own, tiers, measured_only).items():
            if 0 <= rows - bs < len(tokens):
                cell = Cell(bs, rows, seconds, context=context)
                rates[rows] = tokens[rows - bs] / seconds
                predicted[rows] = tokens[rows - bs] / predict(table, cell, max(c.rows for c in own))
        if len(rates) > 1:
            chosen, best = max(predicted, key=predicted.__getitem__), max(rates, key=rates.__getitem__)
            found.append(Choice(bs, context, chosen, best, 1.0 - rates[chosen] / rates[best]))
    return found


def held_out(kind: str, cells: CostCells, tiers: Sequence[int] | None = None) -> Quality | None:
    """How well this kind of fit tells cells that it did not see, the only fair comparison of fits that interpolate.

    Leaves out, one by one (at most 64, evenly chosen), every (bs, M) with smaller and larger M at its bs; those without
    which the kind cannot be fitted are passed over, and None is returned if these are all.
    """
    inner = [(bs, rows) for bs, points in cells.cells.items() for rows, _ in points[1:-1]]
    measured, predicted = [], []
    for bs, rows in inner[:: -(-len(inner) // _HELD_OUT) or 1]:
        left = tuple(cell for cell in cells.samples if (cell.num_reqs, cell.rows) != (bs, rows))
        try:
            table = fit_table(replace(cells, samples=left), kind, tiers)
        except ValueError:
            continue
        for cell in cells.samples:
            if (cell.num_reqs, cell.rows) == (bs, rows):
                measured.append(cell.seconds)
                predicted.append(predict(table, cell, rows))
    return Quality.of(measured, predicted) if measured else None


def report(
    kind: str,
    table: CostTable,
    cells: CostCells,
    tiers: Sequence[int] | None = None,
    survival_of: Survival | None = None,
) -> FitReport:
    """Judge a table by cells.

    Args:
        kind: that of the fit.
        tiers: captured tiers, for the errors around them; default what the cells say.
        survival_of: survival [B, γ] of the batch of so many requests for which budgets are chosen; default
            `spread_survival` with `gamma_of` the cells.
    """
    if survival_of is None:
        gamma = gamma_of(cells)

        def survival_of(num_reqs: int) -> Tensor:
            return spread_survival(num_reqs, gamma)

    captured = known_tiers(cells, tiers)
    max_rows = max(cell.rows for cell in cells.samples)
    predicted = [predict(table, cell, max_rows) for cell in cells.samples]
    around: dict[int, list[float]] = defaultdict(list)
    for cell, seconds in zip(cells.samples, predicted, strict=True):
        for tier in captured:
            around[cell.rows - tier].append(seconds / cell.seconds - 1.0)
    return FitReport(
        kind=kind,
        quality=Quality.of([cell.seconds for cell in cells.samples], predicted),
        held_out=held_out(kind, cells, captured),
        residuals=[
            {"bs": c.num_reqs, "M": c.rows, "context": c.context, "T": c.seconds, "predicted": p}
            for c, p in zip(cells.samples, predicted, strict=True)
        ],
        tier_errors={d: statistics.fmean(around[d]) if d in around else None for d in OFFSETS},
        choices=_choices(table, cells, captured, survival_of, measured_only=False),
        measured_choices=_choices(table, cells, captured, survival_of, measured_only=True),
        is_flat=table.is_flat,
    )


def best_kind(reports: dict[str, FitReport]) -> str:
    """The fit that loses least throughput (to 0.01 %), then the one with the least error on cells it did not see."""

    def rank(kind: str) -> tuple[float, float, float]:
        one = reports[kind]
        lost = round(mean_lost(one.choices), 4), round(mean_lost(one.measured_choices), 4)
        return (*lost, (one.held_out or one.quality).rms_seconds)

    return min(reports, key=rank)
