"""How well a table tells the measured times, and what a planner loses by it (`report`).

A fit can look good on average and still be wrong where it matters: just past a captured tier. So beside RMS and R² it
is judged by its error at the rows around each tier, and by the budget that it would choose: the throughput of that
budget at the *measured* time, against the best budget at the measured times.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from .cells import Cell, CostCells, medians
from .table import CostTable

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
    """The rows that a table chooses among the measured ones, and the best at the measured times."""

    num_reqs: int
    context: int | None
    chosen_rows: int
    best_rows: int
    throughput_lost: float  # share of the best tokens per second, 0 to 1


@dataclass(frozen=True)
class FitReport:
    """One table against the cells."""

    kind: str
    quality: Quality
    residuals: list[dict[str, Any]]  # per cell: bs, M, context, T, predicted
    tier_errors: dict[int, float | None]  # offset from a tier -> mean of predicted / measured - 1; None: not measured
    choices: list[Choice]
    is_flat: bool

    @property
    def mean_lost(self) -> float:
        """Throughput lost, mean over the measured batches; 0 if none has a choice."""
        return statistics.fmean(choice.throughput_lost for choice in self.choices) if self.choices else 0.0

    @property
    def worst_lost(self) -> float:
        """Throughput lost in the worst measured batch."""
        return max((choice.throughput_lost for choice in self.choices), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"mean_throughput_lost": self.mean_lost, "worst_throughput_lost": self.worst_lost}


def predict(table: CostTable, cell: Cell, max_rows: int) -> float:
    """Seconds that the table gives this cell, its row being built for `max_rows`."""
    row = table.row(max_rows, num_reqs=cell.num_reqs)
    return (table.base(cell.num_reqs, cell.context_tokens) + int(row[cell.rows])) * 1e-9


def spread_survival(num_reqs: int, gamma: int, low: float = 0.3, high: float = 0.95) -> Tensor:
    """A batch to choose budgets for, where there is no trace: survival c_r^(k+1), c_r spread evenly from low to high."""
    share = (torch.arange(num_reqs, dtype=torch.float64) + 0.5) / num_reqs
    return (low + (high - low) * share)[:, None] ** torch.arange(1, gamma + 1)


def expected_tokens(survival: Tensor) -> list[float]:
    """Expected tokens of a step by its rows, B to B * N rows, the best drafts first (index 0 is B rows)."""
    best_first = survival.flatten().double().sort(descending=True).values
    tokens = torch.cat([torch.zeros(1, dtype=torch.float64), best_first]).cumsum(0) + survival.shape[0]
    return tokens.tolist()


def _choices(table: CostTable, cells: CostCells, survival_of: Callable[[int], Tensor], max_rows: int) -> list[Choice]:
    batches: dict[tuple[int, int | None], list[Cell]] = defaultdict(list)
    for cell in cells.samples:
        batches[cell.num_reqs, cell.context].append(cell)
    found = []
    for (bs, context), own in batches.items():
        tokens = expected_tokens(survival_of(bs))
        rates, predicted = {}, {}
        for rows, seconds in medians(own, lambda cell: cell.rows):
            if 0 <= rows - bs < len(tokens):
                rates[rows] = tokens[rows - bs] / seconds
                predicted[rows] = tokens[rows - bs] / predict(table, Cell(bs, rows, seconds, context=context), max_rows)
        if len(rates) > 1:
            chosen, best = max(predicted, key=predicted.__getitem__), max(rates, key=rates.__getitem__)
            found.append(Choice(bs, context, chosen, best, 1.0 - rates[chosen] / rates[best]))
    return found


def report(
    kind: str,
    table: CostTable,
    cells: CostCells,
    tiers: Sequence[int] = (),
    survival_of: Callable[[int], Tensor] | None = None,
) -> FitReport:
    """Judge a table by cells.

    Args:
        kind: its name in the report.
        tiers: captured tiers, for the errors around them.
        survival_of: survival [B, γ] of the batch of so many requests for which budgets are chosen; default
            `spread_survival`, with the γ of the cells, or the largest that their rows allow.
    """
    if survival_of is None:
        gamma = cells.gamma or max(max(-(-cell.rows // cell.num_reqs) for cell in cells.samples) - 1, 1)

        def survival_of(num_reqs: int) -> Tensor:
            return spread_survival(num_reqs, gamma)

    max_rows = max(cell.rows for cell in cells.samples)
    predicted = [predict(table, cell, max_rows) for cell in cells.samples]
    around: dict[int, list[float]] = defaultdict(list)
    for cell, seconds in zip(cells.samples, predicted, strict=True):
        for tier in tiers:
            around[cell.rows - tier].append(seconds / cell.seconds - 1.0)
    return FitReport(
        kind=kind,
        quality=Quality.of([cell.seconds for cell in cells.samples], predicted),
        residuals=[
            {"bs": c.num_reqs, "M": c.rows, "context": c.context, "T": c.seconds, "predicted": p}
            for c, p in zip(cells.samples, predicted, strict=True)
        ],
        tier_errors={d: statistics.fmean(around[d]) if d in around else None for d in OFFSETS},
        choices=_choices(table, cells, survival_of, max_rows),
        is_flat=table.is_flat,
    )
