"""Tables from measured cells: SGLang's two fits, and the staircase (DESIGN 5).

`fit_floor` and `fit_additive` give what SGLang 0.5.23 gives for the same cells (golden `cost_fit`), so that a table can
be compared with theirs. The additive fit puts rows into bins of 64: the times at 63, 64 and 65 rows are one number
to it, and a cliff between captured graphs is gone. `fit_tiers` keeps one time per tier.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import torch

from .. import _checks
from . import _fields
from .additive import AdditiveTable
from .cells import EAGER, Cell, CostCells, medians
from .context import ContextTable
from .floor import FloorTable
from .table import CostTable
from .tier import TierGroup, TierTable

KINDS = ("floor", "additive", "tier")
BIN_ROWS = 64


def fit_floor(cells: CostCells) -> FloorTable:
    """Steps per second by rows: the median of all cells with as many rows, whatever their requests."""
    speeds: dict[int, list[float]] = defaultdict(list)
    for cell in cells.samples:
        speeds[cell.rows].append(1.0 / cell.seconds)
    rows = sorted(speeds)
    return FloorTable(rows, [statistics.median(speeds[m]) for m in rows], rows[-1])


def row_bin(rows: int, bin_rows: int = BIN_ROWS) -> int:
    """The probe of the additive fit that stands for so many rows: the nearest multiple of the bin, even on a tie."""
    return round(rows / bin_rows) * bin_rows


def fit_additive(cells: CostCells, bin_rows: int = BIN_ROWS) -> AdditiveTable:
    """Least squares of T = bias + alpha[bs] + theta[bin of M], the first alpha and theta being 0.

    What the cells do not determine gets the solution of least norm, as with SGLang.

    Raises ValueError for fewer than 4 cells, or where the solution is no table (a sum that is not positive).
    """
    _checks.integer("bin_rows", bin_rows, 1, _fields.MAX_PROBE)
    if len(cells.samples) < 4:
        raise ValueError(f"cells: expected at least 4 for an additive fit, got {len(cells.samples)}")
    requests = sorted({cell.num_reqs for cell in cells.samples})
    bins = sorted({row_bin(cell.rows, bin_rows) for cell in cells.samples})
    column = {("bs", bs): 1 + i for i, bs in enumerate(requests[1:])}
    column |= {("M", m): len(requests) + i for i, m in enumerate(bins[1:])}
    design = torch.zeros(len(cells.samples), len(requests) + len(bins) - 1, dtype=torch.float64)
    design[:, 0] = 1.0
    for i, cell in enumerate(cells.samples):
        for key in (("bs", cell.num_reqs), ("M", row_bin(cell.rows, bin_rows))):
            if key in column:
                design[i, column[key]] = 1.0
    seconds = torch.tensor([[cell.seconds] for cell in cells.samples], dtype=torch.float64)
    solution = torch.linalg.lstsq(design, seconds, driver="gelsd").solution[:, 0].tolist()
    split = len(requests)
    return AdditiveTable(solution[0], requests, [0.0, *solution[1:split]], bins, [0.0, *solution[split:]])


def known_tiers(cells: CostCells, tiers: Sequence[int] | None = None) -> tuple[int, ...]:
    """The captured tiers: as given, else as the file lists them, else those that its cells replayed."""
    if tiers is not None:
        return _fields.probes("tiers", tiers) if tiers else ()
    if cells.tiers is not None:
        return cells.tiers
    return tuple(sorted({cell.tier for cell in cells.samples if cell.tier not in (None, EAGER)}))


def tier_of(cell: Cell, tiers: Sequence[int]) -> int:
    """The tier that this cell replayed, or EAGER: what it says itself, else the smallest tier that holds it."""
    if cell.tier is not None:
        return cell.tier
    return next((tier for tier in tiers if tier >= cell.rows), EAGER)


def tier_group(cells: Sequence[Cell], tiers: Sequence[int]) -> TierGroup:
    """The median time of the cells that replayed each tier, and of the eager ones by rows; all of one bs.

    Raises ValueError if a tier below the largest rows is missing: its own would be priced by another graph or path.
    """
    bs = cells[0].num_reqs
    replayed = dict(medians((c for c in cells if tier_of(c, tiers) != EAGER), lambda cell: tier_of(cell, tiers)))
    eager = dict(medians((c for c in cells if tier_of(c, tiers) == EAGER), lambda cell: cell.rows))
    for tier in tiers:
        if bs <= tier < max([*replayed, *eager]) and tier not in replayed:
            raise ValueError(f"cells: expected one that replays tier {tier} at bs {bs}, got none")
    return TierGroup(bs, list(replayed), list(replayed.values()), list(eager), list(eager.values()))


def fit_tiers(cells: CostCells, tiers: Sequence[int] | None = None) -> TierTable:
    """A `tier_group` for each bs; without any tier (a machine that captures nothing), a line through its medians."""
    tiers = known_tiers(cells, tiers)
    batches: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells.samples:
        batches[cell.num_reqs].append(cell)
    return TierTable([tier_group(own, tiers) for _, own in sorted(batches.items())], cells.gamma)


def fit_context(cells: CostCells) -> tuple[float, int]:
    """Seconds per KV token read, and the context per request to which other cells are brought: the median one.

    The slope of T over bs * context among cells that differ in nothing else, all such sets pooled.

    Raises ValueError if a cell does not say its context, if none differ, or if T does not grow.
    """
    sets: dict[tuple[int, int, int | None], list[tuple[int, float]]] = defaultdict(list)
    for i, cell in enumerate(cells.samples):
        if cell.context_tokens is None:
            raise ValueError(f"cell {i}: context: expected one, as other cells have it")
        sets[cell.num_reqs, cell.rows, cell.tier].append((cell.context_tokens, cell.seconds))
    above = below = 0.0
    for points in sets.values():
        tokens, seconds = statistics.fmean(x for x, _ in points), statistics.fmean(t for _, t in points)
        above += sum((x - tokens) * (t - seconds) for x, t in points)
        below += sum((x - tokens) ** 2 for x, _ in points)
    if below == 0.0:
        raise ValueError("cells: expected some that differ in context only, got none")
    if above <= 0.0:
        raise ValueError(f"cells: expected T to grow with context, got {above / below:.3g} seconds per token")
    return above / below, statistics.median_low(cell.context or 0 for cell in cells.samples)


def fit_table(cells: CostCells, kind: str, tiers: Sequence[int] | None = None, bin_rows: int = BIN_ROWS) -> CostTable:
    """The table of this kind; with a context term, if the cells were measured at more than one context.

    Raises ValueError for an unknown kind, and for cells that do not determine it.
    """
    if kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    if len({cell.context for cell in cells.samples}) > 1:
        slope, context = fit_context(cells)
        at_one = tuple(
            replace(c, seconds=c.seconds - slope * c.num_reqs * ((c.context or 0) - context), context=context)
            for c in cells.samples
        )
        return ContextTable(fit_table(replace(cells, samples=at_one), kind, tiers, bin_rows), slope, context)
    if kind == "tier":
        return fit_tiers(cells, tiers)
    return fit_floor(cells) if kind == "floor" else fit_additive(cells, bin_rows)
