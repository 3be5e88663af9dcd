"""The benchmark itself: it runs here, says when there is no rival, and gives no figure when results differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

BENCH = Path(__file__).parent.parent / "bench"
sys.path.insert(0, str(BENCH))
import case  # noqa: E402
import run  # noqa: E402


def test_runs_without_a_rival_and_writes_records(tmp_path: Path) -> None:
    out = tmp_path / "new" / "records.json"
    options = ["--sizes", "3x2", "--seconds", "0.001", "--json", str(out), "--gate"]
    env = {**os.environ, "DSPARK_RIVAL_WHEEL": "nowhere.whl", "PYTHONPATH": str(BENCH.parent)}
    done = subprocess.run([sys.executable, str(BENCH / "run.py"), *options], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "No rival here, our figures alone: DSPARK_RIVAL_WHEEL=nowhere.whl is not a file" in done.stdout
    data = json.loads(out.read_text())
    assert {"cpu", "torch", "threads", "commit"} <= data["machine"].keys()
    for record in data["records"]:
        assert {"op", "B", "gamma", "tier", "backend", "p50_us", "rival", "ratio"} <= record.keys()
        assert record["p20_us"] <= record["p50_us"] <= record["p80_us"]
    assert {r["backend"] for r in data["records"]} >= {"reference", "cpu"}


def test_different_results_stop_the_run() -> None:
    def ours(i: int) -> tuple[torch.Tensor]:
        return (torch.tensor([1, 2, 3]),)

    def rival(i: int) -> tuple[torch.Tensor]:
        return (torch.tensor([1, 2, 3 + (i == case.ROTATE - 1)]),)

    case.all_equal(ours, ours, lambda r: r, "op")
    with pytest.raises(AssertionError, match="op: ours and the rival's results differ"):
        case.all_equal(ours, rival, lambda r: r, "op")


@pytest.mark.parametrize(("ratio", "status"), [(9.9, 1), (10.0, 0)])
def test_gate_judges_ratios(ratio: float, status: int) -> None:
    record = {"op": "allocate_verify_lens (floor)", "B": 8, "gamma": 7, "rival": "SGLang", "ratio": ratio}
    assert run.gate([record, record | {"rival": "copy_", "ratio": 0.1}], run.Console(quiet=True)) == status
