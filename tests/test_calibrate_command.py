"""`dspark-ops calibrate`: the table, the JSON, the file and the figure; one-line errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import matplotlib.image
import pytest
import torch
from typer.testing import CliRunner

from dspark_ops.calibration import StsRecorder, load_calibration
from dspark_ops.commands import app
from dspark_ops.plots.reliability import draw_reliability

TRACES = Path(__file__).parents[1] / "examples/traces"
SAMPLED = str(TRACES / "sampling_small.npz")
GREEDY = str(TRACES / "greedy_small.npz")
COST = ["--cost", str(TRACES / "cost_cells.json")]


def run(*args: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["calibrate", *args])
    return result.exit_code, result.stdout, result.stderr


def shards(folder: Path, requests: bool) -> list[str]:
    g = torch.Generator().manual_seed(0)
    with StsRecorder(folder / "run", 3, "sampled") as recorder:
        for step in range(40):
            z = torch.randn(8, 3, generator=g)
            accepted = torch.rand(8, 3, generator=g) < torch.sigmoid(z - 1)
            ids = torch.arange(8) + 8 * (step // 10) if requests else None
            recorder.record(z, accepted.long().cumprod(1).sum(1), request_ids=ids)
    return [str(p) for p in sorted(folder.glob("run.*.pt"))]


def test_table_file_and_figure(tmp_path: Path) -> None:
    out, figure = tmp_path / "calibration.json", tmp_path / "reliability.png"
    code, text, _ = run(SAMPLED, *COST, "-B", "16", "--out", str(out), "--plot", str(figure))
    assert code == 0
    for part in (
        "sampled acceptance, γ = 7, 2,525 steps",
        "ECE, position 3",
        "AUROC, position 1",
        "over fixed, B = 16",
    ):
        assert part in text
    assert "affine against " in text and "if outcomes were known: 1." in text
    assert "…" not in text and max(map(len, text[: text.index("ECE of a perfect")].splitlines())) <= 80
    assert f"Written to {out}." in text
    calibration = load_calibration(out, gamma=7, acceptance="sampled")
    assert calibration.num_samples == 2525 and calibration.dataset == "sampling_small.npz"
    height, width, _ = matplotlib.image.imread(figure).shape
    assert width > 2 * height > 400


def test_json_is_all_of_stdout_and_a_kind_may_be_named(tmp_path: Path) -> None:
    out = tmp_path / "sts.json"
    code, text, _ = run(SAMPLED, "--head", "z_refit", "--kind", "sts", "--out", str(out), "--json")
    report = json.loads(text)
    assert code == 0 and report["kind"] == "sts" and report["calibration"] == json.loads(out.read_text())
    assert [c["name"] for c in report["candidates"]] == ["none", "sts", "affine", "affine+offset"]
    assert report["acceptance"] == "sampled" and len(report["candidates"][0]["cumulative"]) == 7
    assert "NaN" not in text


def test_shards_of_a_recorder(tmp_path: Path) -> None:
    code, text, _ = run(*shards(tmp_path, requests=True), "--json")
    assert code == 0
    report = json.loads(text)
    assert (report["requests"], report["samples"], report["gamma"], report["notes"]) == (32, 320, 3, [])


def test_shards_without_requests_say_what_that_costs(tmp_path: Path) -> None:
    paths = shards(tmp_path, requests=False)
    code, text, _ = run(*paths)
    assert code == 0 and "the shards name no requests: held out by step" in text
    code, _, err = run(*paths, *COST)
    assert code == 2 and err.startswith("error: cost: a replay needs to know each step's request")


@pytest.mark.parametrize(
    "args, message",
    [
        (["missing.npz"], "missing.npz"),
        ([GREEDY, SAMPLED], "sources: expected one trace, or shards, got a trace among 2 files"),
        ([GREEDY, "--head", "y"], "head: expected z or z_refit"),
        ([GREEDY, "--acceptance", "sampled"], "acceptance: expected greedy"),
        ([GREEDY, "--kind", "best"], "kind: expected one of auto, none, sts, affine"),
        ([GREEDY, *COST, "-B", "40"], "batch: expected a number in [1, 38]"),
        ([SAMPLED, *COST, "-B", "2", "--search", "global"], "search: expected history or first_drop with sampled"),
        ([str(TRACES / "cost_cells.json")], "cost_cells.json: expected a shard"),
    ],
)
def test_one_line_errors(args: list[str], message: str) -> None:
    code, out, err = run(*args)
    assert code == 2 and out == ""
    assert err.startswith("error: ") and message in err and err.count("\n") == 1


def test_a_figure_file_that_is_none_is_refused_and_a_good_one_kept(tmp_path: Path) -> None:
    confidence, correct = torch.rand(50, 2), torch.randint(3, (50,))
    with pytest.raises(ValueError, match=r"figure.txt: expected a figure file ending in one of"):
        draw_reliability({"none": confidence}, correct, tmp_path / "figure.txt")
    path = tmp_path / "figure.svg"
    draw_reliability({"none": confidence, "affine": confidence / 2}, correct, path)
    text = path.read_text()
    assert text.startswith("<?xml") and list(tmp_path.iterdir()) == [path]
    shutil.copy(path, tmp_path / "kept.svg")
    with pytest.raises(ValueError):
        draw_reliability({"none": confidence * 2}, correct, path)
    assert path.read_text() == text
