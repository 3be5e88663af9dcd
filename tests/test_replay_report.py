"""`dspark-ops report`, its figures, and the document that is made from its results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dspark_ops.commands import app

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import replay as bench  # noqa: E402
import replay_table  # noqa: E402

TRACE, CELLS = (ROOT / "examples/traces" / name for name in ("greedy_small.npz", "cost_cells.json"))
REPORT = ["report", str(TRACE), "--cost", str(CELLS), "-B", "4", "--steps", "3"]


def run(*args: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(args))
    return result.exit_code, result.stdout, result.stderr


def test_tables_and_figures(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    code, out, err = run(*REPORT, "--rank-steps", "2", "--plot", str(folder))
    assert code == 0, err
    for text in (
        "cells (measured",
        "compute-bound",
        "cap-accept",
        "oracle",
        "drift, greedy",
        "arrivals a step",
        "joint",
    ):
        assert text in out
    assert "…" not in out, "a cell was cut"
    assert sorted(path.name for path in folder.iterdir()) == ["load.png", "tau.png", "theta.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.iterdir())


def test_json_is_all_of_stdout_and_takes_calibrations(tmp_path: Path) -> None:
    flat = tmp_path / "flat.json"
    flat.write_text(json.dumps({"acceptance": "greedy", "scale": [0.0] * 7, "bias": [-9.0] * 7}))
    code, out, _ = run(*REPORT, "--rank-steps", "0", "--calibration", str(flat), "--json")
    data = json.loads(out)
    assert code == 0 and data["ranks"] == [] and data["trace"] == TRACE.name
    assert [part["order"] for part in data["tables"][::3]] == ["mixed", "mixed", "drift"]
    lines = {line["budget"]: line for line in data["tables"][2]["lines"]}
    assert lines["tier, lag 1, flat"]["proposed"] < lines["tier, lag 1"]["proposed"], "nothing is thought likely"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([*REPORT[:-4], "-B", "a"], "batch: expected comma-separated integers, got 'a'"),
        ([*REPORT[:-4], "-B", "0"], "slots: expected at least one load"),
        ([*REPORT, "--head", "y"], "head: expected one of"),
        ([*REPORT, "--calibration", str(CELLS)], "cost_cells.json: "),
        ([*REPORT[:-4], "-B", "999"], "slots: expected at most the 75 requests"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(args: list[str], message: str) -> None:
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_the_document_holds_the_results() -> None:
    data = json.loads((ROOT / "bench/results/replay.json").read_text())
    document = (ROOT / "docs/replay.md").read_text()
    for table in replay_table.tables(data):
        assert table in document, "docs/replay.md: not the tables of bench/replay_table.py"
    assert f"commit {data['commit']}" in document


def test_results_are_written_a_line_a_line() -> None:
    data = {"a": [{"x": 1.5, "y": None}, {"x": 2, "y": "z"}], "b": {"c": {"d": []}}}
    text = bench.as_json(data)
    assert json.loads(text) == data and text.count("\n") < 14
