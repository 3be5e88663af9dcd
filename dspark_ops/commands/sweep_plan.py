"""`dspark-ops sweep-plan`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..cost.sweep import sweep_plan
from ._app import app, integers, one_line_errors


@app.command("sweep-plan")
def sweep_plan_command(
    tiers: Annotated[str, typer.Option(help="Rows of the captured graphs, as 8,16,32.")],
    batches: Annotated[str, typer.Option("--bs", help="Batch sizes, as 1,8,32.")],
    gamma: Annotated[int, typer.Option(help="Draft tokens per request.")],
    contexts: Annotated[str | None, typer.Option(help="Cached tokens of each request, as 512,4096.")] = None,
    repeats: Annotated[int, typer.Option(help="Times that each cell should be measured.")] = 15,
) -> None:
    """Print the step times worth measuring (tier ± 2 at each batch size) as JSON that a profiler can execute.

    Its cells with the time T added to each are what `dspark-ops fit-cost` reads.
    """
    with one_line_errors():
        lengths = integers("contexts", contexts) if contexts else ()
        plan = sweep_plan(integers("tiers", tiers), integers("bs", batches), gamma, lengths, repeats)
    typer.echo(json.dumps(plan, indent=1))
