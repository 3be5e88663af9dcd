"""The figure of a cost fit: the staircase with each fit, the residuals, and theta over rows with the chosen point."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..cost.cells import Cell, CostCells
from ..cost.fit_report import expected_tokens, gamma_of, predict, spread_survival
from ..cost.table import CostTable
from ._figure import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(
    path: str | os.PathLike[str], cells: CostCells, tables: dict[str, CostTable], chosen: str, bs: int | None = None
) -> None:
    """Draw three panels for one batch size into a file.

    Args:
        path: .png, .svg or .pdf.
        tables: each fit by name; one at least.
        chosen: the name of the fit whose choice of rows is marked.
        bs: a measured batch size; default the one with most cells, the larger on a tie.
    """
    measured = cells.cells
    bs = max(measured, key=lambda one: (len(measured[one]), one)) if bs is None else bs
    if bs not in measured:
        raise ValueError(f"plot-bs: expected one of {', '.join(map(str, measured))}, got {bs}")
    own = [cell for cell in cells.samples if cell.num_reqs == bs]
    figure = new_figure(15, 4.5)
    stairs, residuals, theta = figure.subplots(1, 3)
    _stairs(stairs, own, tables)
    _residuals(residuals, cells, tables)
    _theta(theta, own, tables, chosen, gamma_of(cells))
    save_figure(figure, path)


def _curve(table: CostTable, own: list[Cell]) -> tuple[list[int], list[float]]:
    """Predicted seconds for every number of rows that was measured or lies between."""
    first, last = min(cell.rows for cell in own), max(cell.rows for cell in own)
    bs, context = own[0].num_reqs, own[0].context
    rows = list(range(first, last + 1))
    return rows, [predict(table, Cell(bs, m, 0.0, context=context), last) for m in rows]


def _stairs(axes: Axes, own: list[Cell], tables: dict[str, CostTable]) -> None:
    for name, table in tables.items():
        rows, seconds = _curve(table, own)
        axes.plot(rows, [1e3 * t for t in seconds], drawstyle="steps-mid", label=name)
    axes.plot([c.rows for c in own], [1e3 * c.seconds for c in own], "k.", label="measured")
    axes.set(title=f"Step time at {own[0].num_reqs} requests", xlabel="rows", ylabel="ms")
    axes.legend()


def _residuals(axes: Axes, cells: CostCells, tables: dict[str, CostTable]) -> None:
    last = max(cell.rows for cell in cells.samples)
    for name, table in tables.items():
        errors = [100 * (predict(table, cell, last) / cell.seconds - 1) for cell in cells.samples]
        axes.plot([cell.rows for cell in cells.samples], errors, ".", label=name)
    axes.axhline(0, color="0.7", linewidth=1, zorder=0)
    axes.set(title="Predicted against measured, all requests", xlabel="rows", ylabel="error, %")
    axes.legend()


def _theta(axes: Axes, own: list[Cell], tables: dict[str, CostTable], chosen: str, gamma: int) -> None:
    bs = own[0].num_reqs
    tokens = expected_tokens(spread_survival(bs, gamma))
    for name, table in tables.items():
        pairs = [(m, tokens[m - bs] / t) for m, t in zip(*_curve(table, own), strict=True) if 0 <= m - bs < len(tokens)]
        rows, rates = zip(*pairs, strict=True)
        line = axes.plot(rows, rates, drawstyle="steps-mid", label=name)[0]
        if name == chosen:
            best = max(range(len(rates)), key=rates.__getitem__)
            axes.plot(
                rows[best], rates[best], "*", markersize=14, color=line.get_color(), label=f"{name}: {rows[best]} rows"
            )
    known = [cell for cell in own if 0 <= cell.rows - bs < len(tokens)]
    axes.plot([c.rows for c in known], [tokens[c.rows - bs] / c.seconds for c in known], "k.", label="measured")
    axes.set(title=f"Expected tokens per second at {bs} requests", xlabel="rows", ylabel="theta, tokens/s")
    axes.legend()
