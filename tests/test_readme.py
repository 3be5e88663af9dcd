"""The README's Python example runs as it stands, next to the files in examples/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import dspark_ops

ROOT = Path(__file__).parents[1]


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    assert example is not None and "allocate_verify_lens" in example[1]
    monkeypatch.chdir(ROOT / "examples")
    names: dict[str, Any] = {}
    exec(compile(example[1], "README.md", "exec"), names)
    plan = names["plan"]
    assert plan.cu_seqlens[-1] == plan.verify_lens.sum() == plan.stats[1]


def test_the_example_table_is_worth_planning_with() -> None:
    """Neither one row nor all of them is always best: the plan depends on the confidences."""
    cost = dspark_ops.load_cost_table(ROOT / "examples/sps_table.json")
    row = cost.row(512)
    assert (row[1:] >= row[:-1]).all() and row[0] >= 1_000_000 and row[-1] < 100_000_000
    rows = [
        int(dspark_ops.allocate_verify_lens(torch.full((64, 7), c), cost, search="global").stats[1])
        for c in (0.01, 0.5, 0.99)
    ]
    assert rows[0] < 128 < rows[1] < 256 < 448 < rows[2]
