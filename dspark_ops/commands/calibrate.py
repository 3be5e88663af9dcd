"""`dspark-ops calibrate`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from .._threads import one_thread
from ..calibration import Calibration, Samples, load_shards
from ..calibration.compare import BATCHES, CANDIDATES, Comparison, compare
from ..calibration.simulate import SEARCHES
from ..cost.cells import CostCells
from ..replay import HEADS
from ..trace import Trace
from ._app import Json, app, one_line_errors

AUTO = "auto"
SHOWN = 3  # positions in the table


@app.command()
def calibrate(
    sources: Annotated[list[Path], typer.Argument(help="One trace (.npz), or shards of a recorder (.pt).")],
    head: Annotated[str, typer.Option(help=f"Head of a trace: {' or '.join(HEADS)}.")] = "z",
    acceptance: Annotated[
        str | None, typer.Option(help="greedy or sampled: the event of shards that do not say it.")
    ] = None,
    cost: Annotated[Path | None, typer.Option(help="Step times {bs, M, T}: also compare replayed throughput.")] = None,
    batch: Annotated[
        list[int] | None, typer.Option("--batch", "-B", help=f"Concurrent requests of a replay; default {BATCHES}.")
    ] = None,
    search: Annotated[str, typer.Option(help=f"Budget: {', '.join(SEARCHES)}.")] = SEARCHES[0],
    kind: Annotated[str, typer.Option(help=f"What --out gets: {AUTO}, {', '.join(CANDIDATES)}.")] = AUTO,
    out: Annotated[Path | None, typer.Option(help="Write this calibration, fitted on everything (JSON).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a reliability diagram (.png, .svg, .pdf).")] = None,
    as_json: Json = False,
) -> None:
    """Compare calibrations on held-out requests, say which to ship, and write it."""
    with one_line_errors(), one_thread():
        if kind not in (AUTO, *CANDIDATES):
            raise ValueError(f"kind: expected one of {AUTO}, {', '.join(CANDIDATES)}, got {kind!r}")
        samples, notes = _read(sources, head, acceptance, cost is not None)
        cells = None if cost is None else CostCells.load(cost)
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=as_json or not console.is_terminal) as bar:
            task = bar.add_task("comparing", total=None)
            found = compare(
                samples,
                cells,
                batch or BATCHES,
                search,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
        chosen = found.ship if kind == AUTO else kind
        fitted = msgspec.structs.replace(CANDIDATES[chosen](samples), dataset=sources[0].name)
        if out is not None:
            fitted.save(out)
        if plot is not None:
            _plot(found, chosen, plot)
    if as_json:
        written = {"calibration": json.loads(fitted.to_json()), "kind": chosen, "notes": notes}
        typer.echo(json.dumps({"sources": [str(s) for s in sources], **found.as_dict(), **written}, indent=2))
    else:
        _print(found, fitted, chosen, notes, out)


def _read(sources: list[Path], head: str, acceptance: str | None, replayed: bool) -> tuple[Samples, list[str]]:
    """The samples, and what a reader must know about them."""
    if any(s.suffix == ".npz" for s in sources):
        if len(sources) > 1:
            raise ValueError(f"sources: expected one trace, or shards, got a trace among {len(sources)} files")
        return Samples.from_trace(Trace.load(sources[0]), head, acceptance), []
    samples = load_shards(sources, acceptance)
    if samples.request is not None:
        return samples, []
    if replayed:
        raise ValueError("cost: a replay needs to know each step's request, expected shards recorded with request_ids")
    note = "the shards name no requests: held out by step, which flatters every fit; no offset can learn"
    return replace(samples, request=torch.arange(len(samples))), [note]


def _plot(found: Comparison, chosen: str, path: Path) -> None:
    from ..plots.reliability import draw_reliability  # matplotlib: only for who asks for it

    shown = dict.fromkeys(("none", chosen))
    draw_reliability({n: found[n].confidence for n in shown}, found.samples.correct_len, path)


def _print(found: Comparison, fitted: Calibration, chosen: str, notes: list[str], out: Path | None) -> None:
    report: dict[str, Any] = found.as_dict()
    positions = range(min(SHOWN, report["gamma"]))
    title = f"{report['acceptance']} acceptance, γ = {report['gamma']}, {report['samples']:,} steps"
    table = Table(title=title, title_justify="left")
    table.add_column("held out")
    for candidate in report["candidates"]:
        table.add_column(candidate["name"], justify="right")

    def row(label: str, digits: int, figures: list[float | None]) -> None:
        table.add_row(label, *("-" if f is None else f"{f:.{digits}f}" for f in figures))

    candidates = report["candidates"]
    for name in ("ece", "auroc"):
        for k in positions:
            row(f"{name.upper()}, position {k + 1}", 3, [c["cumulative"][k][name] for c in candidates])
    row("Brier, all positions", 4, [c["brier"] for c in candidates])
    for batch in report["oracle"]:
        ratios = [c["throughput"][batch]["over_best_fixed"] for c in candidates]
        row(f"tokens/s over fixed, B = {batch}", 3, ratios)
    Console().print(table)
    floors = ", ".join(f"{report['candidates'][-1]['cumulative'][k]['ece_floor']:.3f}" for k in positions)
    typer.echo(f"ECE of a perfect predictor on so many steps: {floors}.")
    if report["oracle"]:
        bounds = ", ".join(f"{ratio:.3f} at B = {batch}" for batch, ratio in report["oracle"].items())
        typer.echo(f"Tokens per second over the best fixed length if outcomes were known: {bounds}.")
    for line in (*report["reasons"], *(f"Note: {n}." for n in (*notes, report["note"]))):
        typer.echo(line)
    scale, bias = fitted.scale_bias()
    typer.echo(f"Fitted on everything, {chosen}: scale {_list(scale)}" + (f", bias {_list(bias)}" if bias else ""))
    if fitted.offset_rule is not None:
        rule = fitted.offset_rule
        typer.echo(f"Offset: eta {rule.eta}, decay {rule.decay}, limit {rule.limit}")
    typer.echo(f"Ship: {found.ship}." + ("" if out is None else f" Written to {out}."))


def _list(values: tuple[float, ...]) -> str:
    return " ".join(f"{v:.3g}" for v in values)
