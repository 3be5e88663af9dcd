"""What every command shares: the application, `--json`, one-line errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ..replay import Violation

app = typer.Typer(help="Operators for confidence-scheduled speculative decoding (DSpark).", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Bad input is the user's to mend: one line and exit code 2, no traceback."""
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        if isinstance(error, Violation):
            typer.echo(f"violation: {error}", err=True)
            raise typer.Exit(1) from None
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def integers(name: str, text: str) -> list[int]:
    """An option that is a list, as 8,16,32."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name}: expected integers with commas between, got {text!r}") from None
