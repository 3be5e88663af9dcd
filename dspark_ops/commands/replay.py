"""`dspark-ops replay`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..cost.cells import CostCells
from ..replay import HEADS, SEARCHES, Options, replay
from ..trace import Trace
from ._app import Json, app, one_line_errors


@app.command("replay")
def replay_command(
    trace: Annotated[Path, typer.Argument(help="Recorded greedy trace (.npz, see examples/traces/README.md).")],
    cost: Annotated[Path, typer.Option(help="Measured step times: JSON list of {bs, M, T}.")],
    batch: Annotated[int, typer.Option("--batch", "-B", help="Concurrent requests.")] = Options.batch,
    head: Annotated[str, typer.Option(help=f"Confidence head: {' or '.join(HEADS)}.")] = Options.head,
    search: Annotated[str, typer.Option(help=f"Budget: {' or '.join(SEARCHES)}.")] = Options.search,
    temperature: Annotated[float, typer.Option(help="Divide every logit by this.")] = Options.temperature,
    steps: Annotated[int | None, typer.Option(help="Stop after so many steps.")] = None,
    as_json: Json = False,
) -> None:
    """Replay a trace: static, cap-accept and compact verification side by side, at a measured cost.

    Checks on the way that compact and cap-accept commit the same tokens and static what the trace recorded; exits with
    1 if they do not.
    """
    with one_line_errors():
        options = Options(batch, head, search, temperature, steps)
        recorded, cells = Trace.load(trace), CostCells.load(cost)
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=as_json or not console.is_terminal) as bar:
            task = bar.add_task("replaying", total=None)
            report = replay(recorded, cells, options, lambda done, total: bar.update(task, completed=done, total=total))
    if as_json:
        typer.echo(json.dumps({"trace": str(trace), "cost": str(cost), **report}, indent=2))
    else:
        _print_replay(report)


_FIGURES = {
    "steps": ("steps", "{:,}"),
    "rows_verified": ("rows verified", "{:,}"),
    "tokens_committed": ("tokens committed", "{:,}"),
    "accept_length": ("accepted length, bonus included", "{:.3f}"),
    "predicted_tau": ("tau per step, predicted", "{:.2f}"),
    "actual_tau": ("tau per step, actual", "{:.2f}"),
    "seconds": ("simulated seconds", "{:.2f}"),
    "tokens_per_second": ("tokens per second", "{:.1f}"),
    "ratio_to_static": ("ratio to static", "{:.3f}"),
}


def _print_replay(report: dict[str, Any]) -> None:
    options = report["options"]
    batch, width = options["batch"], report["gamma"] + 1
    title = f"B = {batch}, γ = {report['gamma']}, head {options['head']}, search {options['search']}"
    table = Table(title=title, title_justify="left")
    table.add_column("policy")
    for policy in report["policies"]:
        table.add_column(policy["policy"], justify="right")
    for key, (label, text) in _FIGURES.items():
        table.add_row(label, *(text.format(policy[key]) for policy in report["policies"]))
    Console().print(table)
    fixed = report["best_fixed"]
    typer.echo(
        f"Best common verify length in hindsight: {fixed['verify_len']}, {fixed['tokens_per_second']:.1f} tokens/s, "
        f"{fixed['ratio_to_static']:.3f} of static."
    )
    typer.echo(f"Cost: measured at {report['cost_bs']} requests, up to {report['cost_measured_rows']} rows.")
    if report["cost_measured_rows"] < batch * width:
        typer.echo(f"Warning: static verifies {batch * width} rows, past the measured ones: its time is too low.")
    typer.echo(f"Used {report['recorded_steps_used']:,} of {report['recorded_steps']:,} recorded request steps.")
    typer.echo(f"Checked on {report['checks']}.")
    typer.echo(f"Note: {report['note']}.")
