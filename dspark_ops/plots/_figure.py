"""What every figure shares: matplotlib without a display, and a file that is replaced as a whole."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from .._files import write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, outside pyplot's global state.

    Raises RuntimeError, in one line, if matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RuntimeError(f"figures need matplotlib: pip install 'dspark_ops[plot]' ({error})") from error
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Draw into a file, of the kind that its suffix says (.png, .svg, .pdf); on failure an older file stays whole."""
    kind = Path(path).suffix.removeprefix(".").lower()
    kinds = figure.canvas.get_supported_filetypes()
    if kind not in kinds:
        raise ValueError(f"{path}: expected a figure file ending in one of .{', .'.join(sorted(kinds))}")
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, dpi=120)
    write_atomic(path, drawn.getvalue())
