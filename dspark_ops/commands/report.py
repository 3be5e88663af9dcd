"""`dspark-ops report`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..calibration import load_calibration
from ..cost.cells import CostCells
from ..replay.report import Options, Section, report, theta_curve
from ..trace import Trace
from ._app import Json, app, one_line_errors


@app.command("report")
def report_command(
    trace: Annotated[Path, typer.Argument(help="Recorded trace, greedy or sampled (.npz).")],
    cost: Annotated[Path, typer.Option(help="Measured step times: JSON list of {bs, M, T}.")],
    batch: Annotated[str, typer.Option("--batch", "-B", help="Loads, comma-separated.")] = "8,16,32",
    head: Annotated[str, typer.Option(help="Confidence head: z_refit or z.")] = Options.head,
    calibration: Annotated[
        list[Path] | None, typer.Option(help="Also plan with this file; may be given again.")
    ] = None,
    held_out: Annotated[
        bool, typer.Option(help="Fit calibrations to every second request, and replay only the others.")
    ] = False,
    rank_steps: Annotated[int, typer.Option(help="Steps of the data-parallel comparison; 0: none.")] = 300,
    steps: Annotated[int | None, typer.Option(help="Stop every replay after so many steps.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Folder for tau.png, theta.png and load.png.")] = None,
    as_json: Json = False,
) -> None:
    """Replay a trace under every budget and policy, on the measured machine and on two staircases.

    For each machine and load: acceptance with its counts, rows, TPOT, and throughput over static verification, over
    the best fixed length and over an oracle that knows the outcome; then the rules of data-parallel ranks.
    """
    with one_line_errors():
        files = tuple((path.stem, load_calibration(path)) for path in calibration or [])
        options = Options(_loads(batch), head, files, held_out, rank_steps, steps)
        recorded, cells = Trace.load(trace), CostCells.load(cost)
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=as_json or not console.is_terminal) as bar:
            task = bar.add_task("replaying", total=None)
            data, found = report(
                recorded, cells, options, lambda done, total: bar.update(task, completed=done, total=total)
            )
        if plot is not None:
            _draw(recorded, found, options, plot)
    if as_json:
        origin = {"trace": trace.name, "sha256": hashlib.sha256(trace.read_bytes()).hexdigest(), "cost": cost.name}
        typer.echo(json.dumps(rounded(origin | data), indent=1))
    else:
        _print_report(data)


def _loads(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise ValueError(f"batch: expected comma-separated integers, got {text!r}") from None


def _draw(trace: Trace, found: list[Section], options: Options, folder: Path) -> None:
    from ..plots.replay import draw_load, draw_tau, draw_theta

    folder.mkdir(parents=True, exist_ok=True)
    logits = torch.from_numpy(getattr(trace, options.head)[trace.request_starts[: max(options.slots)]])
    draw_tau(found, folder / "tau.png")
    draw_theta({s.scene.name: theta_curve(logits, s.scene.truth) for s in found}, folder / "theta.png")
    draw_load(found, folder / "load.png")


def rounded(value: Any) -> Any:
    """Six digits: the figures are no more certain, and files stay small."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    return [rounded(entry) for entry in value] if isinstance(value, list) else value


COLUMNS = {
    "policy": ("policy", "{}"),
    "budget": ("budget", "{}"),
    "accept_length": ("AL", "{:.3f}"),
    "accepted": ("accepted", "{:,}"),
    "proposed": ("of proposed", "{:,}"),
    "acceptance_rate": ("rate", "{:.3f}"),
    "rows": ("rows", "{:,}"),
    "tpot_ms": ("TPOT ms", "{:.2f}"),
    "tokens_per_second": ("tokens/s", "{:,.1f}"),
    "over_static": ("/static", "{:.3f}"),
    "over_best_fixed": ("/fixed", "{:.3f}"),
    "over_oracle": ("/oracle", "{:.3f}"),
    "tau_bias": ("tau bias", "{:+.3f}"),
}
RANK_COLUMNS = {
    "rule": ("rule", "{}"),
    "tokens": ("tokens", "{:,}"),
    "rows": ("rows", "{:,}"),
    "mean_graph_rows": ("graph rows", "{:.1f}"),
    "tokens_per_second": ("tokens/s", "{:,.1f}"),
    "over_maximum": ("/maximum, filled", "{:.3f}"),
    "expected_over_maximum": ("the same, expected", "{:.3f}"),
}


def _table(title: str, columns: dict[str, tuple[str, str]], lines: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for i, (label, _) in enumerate(columns.values()):
        table.add_column(label, justify="left" if i < 1 or label == "budget" else "right", no_wrap=True)
    for line in lines:
        table.add_row(*("" if line[key] is None else text.format(line[key]) for key, (_, text) in columns.items()))
    return table


def _print_report(data: dict[str, Any]) -> None:
    console = Console(width=165)
    for part in data["tables"]:
        coming = "all slots busy" if part["arrivals"] is None else f"{part['arrivals']:g} arrivals a step"
        title = (
            f"{part['scene']} ({part['note']}), B = {part['slots']}, {coming}, {part['order']}, {data['acceptance']}"
        )
        console.print(_table(title, COLUMNS, part["lines"]))
    for part in data["ranks"]:
        title = f"{part['scene']}, 4 ranks: {part['ranks']}; calibration: {part['calibration']}"
        console.print(_table(title, RANK_COLUMNS, part["lines"]))
    typer.echo(f"Note: {data['note']}.")
