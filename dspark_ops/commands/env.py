"""`dspark-ops env`."""

from __future__ import annotations

import json

import typer

from .. import environment
from ._app import Json, app


@app.command()
def env(as_json: Json = False) -> None:
    """Show versions, back ends (with the reason when one cannot run here), compilers and environment variables."""
    facts = environment.describe()
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for section, entries in facts.items():
        typer.echo(f"{section}:" if entries else f"{section}: none")
        width = max(map(len, entries), default=0)
        for name, text in entries.items():
            typer.echo(f"  {name:<{width}}  {text}")
