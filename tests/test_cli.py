"""The command line: output, exit codes, one-line errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dspark_ops.replay.demo as replay_module
import golden_data
from dspark_ops import backends
from dspark_ops.commands import app

TESTS = Path(__file__).parent
TRACE = TESTS.parent / "examples/traces/greedy_small.npz"
CELLS = TESTS.parent / "examples/traces/cost_cells.json"
REPLAY = ["replay", str(TRACE), "--cost", str(CELLS)]


def run(*args: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(args))
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A small golden folder: two known files, one unknown."""
    for name in ("accept", "schedule_verify_lens"):
        cases = golden_data.load(name)[:3]
        (tmp_path / f"{name}.json").write_text(json.dumps(cases))
    (tmp_path / "new_thing.json").write_text("[]")
    return tmp_path


def test_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSPARK_EXAMPLE", "1")
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    monkeypatch.setenv("OTHER_EXAMPLE", "1")
    code, out, _ = run("env")
    assert code == 0
    for backend in backends():
        assert f"{backend.name} " in out
    assert re.search(r"^  DSPARK_EXAMPLE +1$", out, re.M)
    facts = json.loads(run("env", "--json")[1])
    assert facts["variables"].items() >= {"DSPARK_EXAMPLE": "1", "TRITON_INTERPRET": "0"}.items()
    assert "OTHER_EXAMPLE" not in facts["variables"]
    assert facts["back ends"]["reference"].startswith("available: ")
    assert set(facts["compilers"]) == {"g++", "nvcc", "bisheng"}


def test_env_says_when_a_compiler_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "nvcc"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    compilers = json.loads(run("env", "--json")[1])["compilers"]
    assert compilers["g++"] == compilers["bisheng"] == "not found"
    assert compilers["nvcc"].startswith("found, but does not run")


def test_replay_prints_a_table() -> None:
    code, out, _ = run(*REPLAY, "--batch", "4", "--steps", "5")
    assert code == 0
    for text in ("static", "cap-accept", "compact", "step resampling", "Best common verify length"):
        assert text in out
    assert "Warning" not in out
    assert max(map(len, out[: out.index("Best common")].splitlines())) <= 80
    assert "…" not in out, "a cell was cut"


def test_replay_warns_past_the_measured_rows() -> None:
    assert "Warning: static verifies 160 rows" in run(*REPLAY, "--batch", "20", "--steps", "2")[1]


def test_replay_json_is_all_of_stdout() -> None:
    code, out, _ = run(*REPLAY, "-B", "4", "--steps", "5", "--head", "z", "--search", "first_drop", "--json")
    report = json.loads(out)
    assert code == 0
    assert [p["policy"] for p in report["policies"]] == ["static", "cap-accept", "compact"]
    assert report["options"] == {
        "batch": 4, "head": "z", "search": "first_drop", "temperature": 1.0, "max_steps": 5,
    }  # fmt: skip


def test_env_shows_every_variable_of_envs_md(monkeypatch: pytest.MonkeyPatch) -> None:
    names = re.findall(r"^\| `(\w+)`", (TESTS.parent / "ENVS.md").read_text(), re.M)
    for name in names:
        monkeypatch.setenv(name, "0")
    assert len(names) >= 5 and json.loads(run("env", "--json")[1])["variables"].keys() >= set(names)


@pytest.mark.parametrize(
    "args, message",
    [
        (["replay", "missing.npz", "--cost", str(CELLS)], "missing.npz"),
        (["replay", str(CELLS), "--cost", str(CELLS)], "expected an .npz archive"),
        (["replay", str(TRACE), "--cost", str(TRACE)], "greedy_small.npz: "),
        ([*REPLAY, "--batch", "0"], "batch: expected at least 1, got 0"),
        ([*REPLAY, "--batch", "1000"], "batch: expected at most the 75 requests"),
        ([*REPLAY, "--head", "y"], "head: expected one of"),
        (["check", "missing"], "missing: expected a folder"),
        (["check", str(golden_data.DIRECTORY), "--backend", "no"], "backend: expected one of"),
        (["check", str(golden_data.DIRECTORY), "--backend", "ascend"], "backend 'ascend' is not available"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(args: list[str], message: str) -> None:
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1
    assert message in err


def test_a_violation_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def differ(*_: object) -> None:
        raise replay_module.Violation("compact and cap-accept differ in bonus")

    monkeypatch.setattr(replay_module, "check_same_commit", differ)
    code, _, err = run(*REPLAY, "--steps", "1")
    assert code == 1
    assert "violation: compact and cap-accept differ in bonus" in err


def test_check_ends_with_the_count(golden: Path) -> None:
    code, out, _ = run("check", str(golden), "--backend", "reference", "--seconds", "0")
    assert code == 0
    assert "no checker yet for: new_thing.json" in out
    assert out.splitlines()[-1] == "6 passed, 0 failed"


def test_check_fails_on_a_corrupted_case(golden: Path) -> None:
    path = golden / "accept.json"
    cases = json.loads(path.read_text())
    cases[1]["commit_lens"][0] += 1
    path.write_text(json.dumps(cases))
    code, out, _ = run("check", str(golden), "--backend", "reference", "--seconds", "0")
    assert code == 1
    assert "  case 1: commit_len[0] is" in out
    assert out.splitlines()[-1] == "5 passed, 1 failed"
    code, out, _ = run("check", str(golden), "--seconds", "0", "--json")
    assert code == 1
    assert json.loads(out)["failed"] == 1


@pytest.mark.parametrize("missing", ["typer", "rich", "numpy"])
def test_a_missing_extra_is_named(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from dspark_ops.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: dspark-ops needs {missing}, ")
    assert "pip install 'dspark_ops[cli]'" in done.stderr
