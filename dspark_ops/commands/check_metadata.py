"""`dspark-ops check-metadata`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..ascend_check import check_metadata as run
from ..check import Report
from ._app import Json, app, one_line_errors
from .check import _print_check


@app.command()
def check_metadata(
    backend: Annotated[str | None, typer.Option(help="Force this back end; default: the CPU's.")] = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time for random steps.")] = 10.0,
    as_json: Json = False,
) -> None:
    """Check the metadata of ragged verify steps on Ascend: random steps, eager and for a graph, against the reference.

    Exits with 1 on a difference, and with 2 if the back end cannot run here or lacks an operator.
    """
    with one_line_errors():
        report = Report([run(backend, seconds)], [])
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2))
    else:
        _print_check(report)
    raise typer.Exit(1 if report.failed else 0)
