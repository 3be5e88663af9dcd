"""The golden cases in tests/golden (computed by SGLang 0.5.23; copied from the project's collection)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def load(name: str) -> list[dict[str, Any]]:
    return json.loads((Path(__file__).parent / "golden" / f"{name}.json").read_text())
