"""`dspark-ops fit-cost`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ..cost import CostTable
from ..cost.cells import CostCells
from ..cost.fit import KINDS, fit_table, known_tiers
from ..cost.fit_report import OFFSETS, FitReport, best_kind, mean_lost, report
from ..cost.noise import min_gain_ppm
from ..plots import cost as figures
from ._app import Json, app, integers, one_line_errors

AUTO = "auto"


@app.command("fit-cost")
def fit_cost_command(
    cells: Annotated[Path, typer.Argument(help="Measured step times: JSON list of {bs, M, T}, or a measured sweep.")],
    tiers: Annotated[str | None, typer.Option(help="Rows of the captured graphs; default what the file says.")] = None,
    kind: Annotated[str, typer.Option(help=f"The table to write: {', '.join(KINDS)}, or {AUTO}.")] = AUTO,
    out: Annotated[Path | None, typer.Option(help="Write the chosen table to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw staircase, residuals and theta (.png, .svg, .pdf).")] = None,
    plot_bs: Annotated[int | None, typer.Option(help="Batch size of the figure; default the most measured.")] = None,
    as_json: Json = False,
) -> None:
    """Fit cost tables to measured step times, say how good each is and what it loses, and write the chosen one.

    `auto` chooses the least throughput lost, then the least error on cells that the fit did not see.
    """
    with one_line_errors():
        if kind not in (*KINDS, AUTO):
            raise ValueError(f"kind: expected one of {', '.join((*KINDS, AUTO))}, got {kind!r}")
        measured = CostCells.load(cells)
        captured = known_tiers(measured, None if tiers is None else integers("tiers", tiers))
        tables, reports, failed = _fit_all(measured, captured, quiet=as_json)
        if not tables or kind in failed:
            raise ValueError(f"{cells}: {failed.get(kind) or '; '.join(failed.values())}")
        chosen = best_kind(reports) if kind == AUTO else kind
        gain = _gain(measured)
        if plot is not None:
            figures.draw(plot, measured, tables, chosen, plot_bs)
        if out is not None:
            tables[chosen].save(out)
    if as_json:
        facts = {
            "cells": str(cells), "tiers": captured, "chosen": chosen, "fingerprint": tables[chosen].fingerprint,
            "noise": gain, "not_fitted": failed, "fits": {name: one.as_dict() for name, one in reports.items()},
        }  # fmt: skip
        typer.echo(json.dumps(facts, indent=2))
        return
    _print_reports(reports)
    for name, reason in failed.items():
        typer.echo(f"Not fitted, {name}: {reason}")
    _print_chosen(chosen, tables[chosen], gain, out)


def _fit_all(
    measured: CostCells, tiers: tuple[int, ...], quiet: bool
) -> tuple[dict[str, CostTable], dict[str, FitReport], dict[str, str]]:
    """Tables and reports by kind, and why a kind could not be fitted."""
    tables: dict[str, CostTable] = {}
    reports: dict[str, FitReport] = {}
    failed: dict[str, str] = {}
    console = Console(stderr=True)
    for kind in track(KINDS, "fitting", console=console, transient=True, disable=quiet or not console.is_terminal):
        try:
            tables[kind] = fit_table(measured, kind, tiers)
        except ValueError as error:
            failed[kind] = str(error)
            continue
        reports[kind] = report(kind, tables[kind], measured, tiers)
    return tables, reports, failed


def _gain(measured: CostCells) -> dict[str, float] | None:
    """Noise of the cells and the gain that a plan should predict at least; None if nothing was measured twice."""
    try:
        noise = measured.relative_noise()
    except ValueError:
        return None
    samples = measured.samples_per_cell()
    return {"relative": noise, "samples": samples, "min_gain_ppm": min_gain_ppm(min(noise, 1.0), samples)}


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _print_reports(reports: dict[str, FitReport]) -> None:
    console = Console()
    table = Table(title="Error on the cells, on cells not seen; throughput lost")
    for name in ("fit", "RMS ms", "R²", "mean", "worst", "not seen", "lost", "lost*"):
        table.add_column(name, justify="left" if name == "fit" else "right")
    for kind, one in reports.items():
        quality = one.quality
        r2 = "-" if quality.r2 is None else f"{quality.r2:.4f}"
        unseen = None if one.held_out is None else one.held_out.mean_relative_error
        lost = mean_lost(one.choices), mean_lost(one.measured_choices)
        shares = (quality.mean_relative_error, quality.worst_relative_error, unseen, *lost)
        table.add_row(kind, f"{1e3 * quality.rms_seconds:.3f}", r2, *map(_percent, shares))
    console.print(table)
    if any(error is not None for one in reports.values() for error in one.tier_errors.values()):
        around = Table(title="Mean error around the captured tiers, predicted against measured")
        around.add_column("fit")
        for d in OFFSETS:
            around.add_column(f"tier {d:+d}" if d else "tier", justify="right")
        for kind, one in reports.items():
            around.add_row(kind, *(_percent(one.tier_errors[d]) for d in OFFSETS))
        console.print(around)
    console.print(_choices(reports))
    console.print("lost: by the choice among all rows; lost*: among the measured ones only", style="dim")


def _choices(reports: dict[str, FitReport]) -> Table:
    table = Table(title="Rows chosen, and throughput lost")
    for name in ("bs", "context", "best", *reports):
        table.add_column(name, justify="right")
    for same_batch in zip(*(one.choices for one in reports.values()), strict=True):
        first = same_batch[0]
        cells: list[Any] = [first.num_reqs, "-" if first.context is None else first.context, first.best_rows]
        cells += [f"{one.chosen_rows} ({_percent(one.throughput_lost)})" for one in same_batch]
        table.add_row(*map(str, cells))
    return table


def _print_chosen(chosen: str, table: CostTable, gain: dict[str, float] | None, out: Path | None) -> None:
    where = f", written to {out}" if out is not None else ""
    typer.echo(f"Chosen: {chosen}{where}; fingerprint {table.fingerprint[:16]}.")
    if table.is_flat:
        typer.echo("Warning: this table is flat: rows cost nothing in it, and a planner will always verify everything.")
    if gain is None:
        typer.echo("Noise: unknown, no cell was measured twice (n with T_min and T_max would tell it).")
    else:
        typer.echo(
            f"Noise: {_percent(gain['relative'])} of a step time, {gain['samples']} per cell: "
            f"plan with min_gain_ppm = {gain['min_gain_ppm']}."
        )
