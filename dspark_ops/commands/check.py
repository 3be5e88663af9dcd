"""`dspark-ops check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..check import Report, check_directory
from ._app import Json, app, one_line_errors


@app.command()
def check(
    directory: Annotated[Path, typer.Argument(help="Folder of golden files, <name>.json.")],
    backend: Annotated[str | None, typer.Option(help="Force this back end; default: every one for the CPU.")] = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time for random cases.")] = 20.0,
    as_json: Json = False,
) -> None:
    """Check this installation: golden cases, then random equality with the reference.

    Exits with 1 on a failure, and with 2 if there is nothing to check or the back end cannot run here.
    """
    with one_line_errors():
        report = check_directory(directory, backend, seconds)
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2))
    else:
        _print_check(report)
    raise typer.Exit(1 if report.failed else 0)


def _print_check(report: Report) -> None:
    for outcome in report.outcomes:
        typer.echo(f"{outcome.name}: {outcome.passed} passed, {len(outcome.failures)} failed")
        for message in outcome.failures[:5]:
            typer.echo(f"  {message}")
        if len(outcome.failures) > 5:
            typer.echo(f"  ... and {len(outcome.failures) - 5} more")
    for line in report.notes:
        typer.echo(line)
    typer.echo(f"{report.passed} passed, {report.failed} failed")
