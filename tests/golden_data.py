"""The golden cases in tests/golden (computed by SGLang 0.5.23; copied from the project's collection)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent / "golden"


@cache
def load(name: str) -> list[dict[str, Any]]:
    """The cases of one file. They are shared: do not write into them."""
    return json.loads((DIRECTORY / f"{name}.json").read_text())
