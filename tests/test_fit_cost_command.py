"""`dspark-ops sweep-plan` and `fit-cost`: from a plan to a table, its reports and its figure."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dspark_ops import FloorTable, TierTable, load_cost_table
from dspark_ops.commands import app
from dspark_ops.cost.cells import CostCells
from dspark_ops.cost.fit import fit_tiers
from dspark_ops.plots._figure import new_figure
from dspark_ops.plots.cost import _theta

EXAMPLES = Path(__file__).parents[1] / "examples/traces"
CELLS = str(EXAMPLES / "cost_cells.json")


def run(*args: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(map(str, args)))
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A plan as `sweep-plan` prints it, with times as a profiler adds them: a cliff past 64 rows."""
    code, out, _ = run("sweep-plan", "--tiers", "32,64,96", "--bs", "16,24", "--gamma", "3", "--repeats", "5")
    assert code == 0
    plan = json.loads(out)
    for cell in plan["cells"]:
        seconds = {32: 0.010, 64: 0.012, 96: 0.018, -1: 0.025}[cell["tier"]]
        cell |= {"T": seconds, "n": plan["repeats"], "T_min": seconds * 0.99, "T_max": seconds * 1.01}
    path = tmp_path / "cells.json"
    path.write_text(json.dumps(plan))
    return path


def test_from_a_plan_to_a_table(sweep: Path, tmp_path: Path) -> None:
    code, out, err = run("fit-cost", sweep, "--out", tmp_path / "table.json")
    assert (code, err) == (0, "")
    table = load_cost_table(tmp_path / "table.json")
    assert isinstance(table, TierTable) and table.gamma == 3 and table.tiers == (32, 64, 96)
    assert table.row(96, num_reqs=24)[64] == 12_000_000 and table.row(96, num_reqs=24)[65] == 18_000_000
    for text in ("floor", "additive", "tier +1", "tier -2", "lost", "min_gain_ppm = ", f"fingerprint {table.fingerprint[:16]}"):  # fmt: skip  # noqa: E501
        assert text in out, text
    assert "Chosen: tier, written to" in out and "Warning" not in out
    assert "…" not in out, "a cell was cut"
    assert max(map(len, out[: out.index("Chosen")].splitlines())) <= 80


def test_json_is_all_of_stdout(sweep: Path) -> None:
    code, out, err = run("fit-cost", sweep, "--kind", "additive", "--json")
    facts = json.loads(out)
    assert (code, err) == (0, "") and facts["chosen"] == "additive" and facts["tiers"] == [32, 64, 96]
    assert facts["noise"]["samples"] == 5 and facts["noise"]["min_gain_ppm"] > 0
    additive, tier = facts["fits"]["additive"], facts["fits"]["tier"]
    assert additive["throughput_lost"] > tier["throughput_lost"]
    assert additive["tier_errors"]["1"] < -0.02 and abs(tier["tier_errors"]["1"]) < 1e-6
    assert len(tier["residuals"]) == len(json.loads(sweep.read_text())["cells"])
    assert {"rms_seconds", "r2", "mean_relative_error", "worst_relative_error"} == tier["quality"].keys()


def test_the_real_cells_have_no_tiers(tmp_path: Path) -> None:
    code, out, _ = run("fit-cost", CELLS)
    assert code == 0 and "tier +1" not in out and "Noise: unknown" in out
    code, out, _ = run("fit-cost", CELLS, "--tiers", "8,14,16,24")
    assert code == 0 and "Not fitted, tier: cells: expected one that replays tier" in out


def test_a_flat_table_is_said_aloud(tmp_path: Path) -> None:
    """Fault 1 of facts/peers.md: a flat table pins every plan to verify-all, and nobody notices."""
    path = tmp_path / "cells.json"
    path.write_text(json.dumps([{"bs": bs, "M": m, "T": 0.01} for bs in (1, 2) for m in (2, 4, 8)]))
    code, out, _ = run("fit-cost", path, "--kind", "floor", "--out", tmp_path / "t.json")
    assert code == 0 and "Warning: this table is flat" in out
    flat = load_cost_table(tmp_path / "t.json")
    assert isinstance(flat, FloorTable) and flat.is_flat


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plot(sweep: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"figure{suffix}"
    assert run("fit-cost", sweep, "--plot", path, "--plot-bs", "16")[0] == 0
    data = path.read_bytes()
    if suffix == ".png":
        assert data.startswith(b"\x89PNG") and data.rstrip().endswith(b"IEND\xaeB`\x82")
    else:
        text = data.decode()
        assert "Step time at 16 requests" in text or "<path" in text
        assert text.rstrip().endswith("</svg>")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["cells.json", path.name])


def test_a_plot_leaves_out_what_no_step_has(tmp_path: Path) -> None:
    """Fewer rows than requests: no expected tokens, and none of another row's."""
    cells = CostCells.from_list([{"bs": 4, "M": m, "T": 0.001 * m} for m in (1, 2, 4, 6, 8)], gamma=1)
    tables = {"tier": fit_tiers(cells)}
    figure = new_figure(4, 4)
    axes = figure.subplots()
    _theta(axes, list(cells.samples), tables, "tier", 1)
    assert list(axes.lines[0].get_xdata()) == [4, 5, 6, 7, 8]


def test_a_missing_matplotlib_is_one_line(sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = run("fit-cost", sweep, "--plot", tmp_path / "f.png")
    assert (code, out) == (2, "")
    assert err.startswith("error: figures need matplotlib: pip install 'dspark_ops[plot]'") and err.count("\n") == 1
    assert run("fit-cost", sweep)[0] == 0, "only the figure needs it"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["fit-cost", "missing.json"], "missing.json"),
        (["fit-cost", CELLS, "--kind", "line"], "kind: expected one of floor, additive, tier, auto, got 'line'"),
        (["fit-cost", CELLS, "--tiers", "8,x"], "tiers: expected integers with commas between, got '8,x'"),
        (["fit-cost", CELLS, "--tiers", "8,14,16,24", "--kind", "tier"], "expected one that replays tier"),
        (["fit-cost", CELLS, "--plot", "f.png", "--plot-bs", "3"], "plot-bs: expected one of 1, 2, 4, 8, 16, 24, 32"),
        (["fit-cost", CELLS, "--plot", "figure.doc"], "figure.doc: expected a figure file ending in one of ."),
        (["sweep-plan", "--tiers", "8,4", "--bs", "1", "--gamma", "3"], "tiers: expected strictly increasing"),
        (["sweep-plan", "--tiers", "8", "--bs", "", "--gamma", "3"], "bs: expected integers with commas"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(args: list[str], says: str) -> None:
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and says in err


@pytest.mark.parametrize("change", [{"T": -1.0}, {"M": 0}, {"bs": "1"}, {"tier": 1}, {"n": 0}, {"context": -5}])
def test_bad_cells_never_replace_a_good_table(sweep: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    out = tmp_path / "table.json"
    assert run("fit-cost", sweep, "--out", out)[0] == 0
    good = out.read_bytes()
    plan = json.loads(sweep.read_text())
    plan["cells"][3] |= change
    sweep.write_text(json.dumps(plan))
    code, _, err = run("fit-cost", sweep, "--out", out)
    assert code == 2 and f"cell 3: {next(iter(change))}: expected" in err
    assert out.read_bytes() == good
