"""The benchmark itself: it runs here, says when there is no rival, and gives no figure when results differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.profiler import record_function

import dspark_ops
from dspark_ops import _backends
from dspark_ops.testing import Mismatch

BENCH = Path(__file__).parent.parent / "bench"
sys.path.insert(0, str(BENCH))
import case  # noqa: E402
import rival  # noqa: E402
import run  # noqa: E402
import step  # noqa: E402
import table  # noqa: E402
import timing  # noqa: E402


def test_runs_without_a_rival_and_writes_records(tmp_path: Path) -> None:
    out = tmp_path / "new" / "records.json"
    options = ["--sizes", "3x2", "--seconds", "0.001", "--json", str(out), "--gate"]
    env = {**os.environ, "DSPARK_RIVAL_WHEEL": "nowhere.whl", "PYTHONPATH": str(BENCH.parent)}
    done = subprocess.run([sys.executable, str(BENCH / "run.py"), *options], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "No rival here, our figures alone: DSPARK_RIVAL_WHEEL=nowhere.whl is not a file" in done.stdout
    judged = next(line for line in done.stdout.splitlines() if line.startswith("gate NOT judged: "))
    assert "DSPARK_RIVAL_WHEEL=nowhere.whl is not a file" in judged
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


def safe_lens(off: int = 0) -> case.Case:
    """A case whose results are too large by `off` in the last of its inputs, but not on the reference back end."""
    start, out = torch.tensor([5, 126, 300]), torch.empty(3, dtype=torch.int32)

    def ours(i: int) -> torch.Tensor:
        dspark_ops.max_safe_verify_len(start + i, 4, 2, 16, out=out)
        return out.add_(off if i == case.ROTATE - 1 and _backends.forced_namespace is None else 0)

    return case.Case("max_safe_verify_len", 3, 15, ours)


def test_results_that_differ_from_the_reference_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is no rival; nothing is timed."""

    def first_is(case: case.Case) -> None:
        monkeypatch.setattr(run.cases_planning, "cases", lambda *_: iter([case]))

    monkeypatch.setattr(run, "race", lambda calls, seconds: [timing.Spread(1.0, 2.0, 3.0)] * len(calls))
    first_is(safe_lens())
    assert next(run.measure(3, 15, "cpu", 0.0, None))["p50_us"] == 2.0
    first_is(safe_lens(off=1))
    with pytest.raises(Mismatch, match=r"max_safe_verify_len: result 0 \[0\] is .*, the reference says"):
        next(run.measure(3, 15, "cpu", 0.0, None))


def test_a_call_that_writes_nothing_does_not_pass_for_the_reference() -> None:
    start, out = torch.tensor([5, 126, 300]), torch.empty(3, dtype=torch.int32)

    def lazy(i: int) -> torch.Tensor:
        if _backends.forced_namespace is None:
            return out
        return dspark_ops.max_safe_verify_len(start, 4, 2, 16, out=out)

    with pytest.raises(Mismatch):
        case.equals_reference(case.Case("max_safe_verify_len", 3, 15, lazy))


def test_state_is_restored_and_compared() -> None:
    offset, confidence = torch.zeros(3), torch.full((3, 2), 0.25)
    lens = torch.tensor([3, 3, 1], dtype=torch.int32)

    def learn(i: int) -> None:
        eta = 0.1 if _backends.forced_namespace else rate
        dspark_ops.update_offset(offset, confidence, lens, lens, eta=eta)

    rate, learns = 0.1, case.Case("update_offset", 3, 2, learn, state=(offset,))
    case.equals_reference(learns)
    rate = 0.2
    with pytest.raises(Mismatch):
        case.equals_reference(learns)


@pytest.mark.parametrize(("ratio", "status"), [(9.9, 1), (10.0, 0)])
def test_gate_judges_ratios(ratio: float, status: int) -> None:
    record = {"op": "allocate_verify_lens (floor)", "B": 8, "gamma": 7, "rival": "SGLang", "ratio": ratio}
    records = [record, record | {"rival": "copy_", "ratio": 0.1}]
    assert run.gate(records, run.Console(quiet=True), "SGLang") == status


@pytest.mark.parametrize(("sizes", "dim"), [((3, 2), 1), ((8, 7), 64)])
def test_the_copy_moves_as_many_bytes(sizes: tuple[int, int], dim: int) -> None:
    """What scatter and gather read and write, counted from their tensors, is what the copy reads and writes."""
    batch, gamma = sizes
    scatter, gather = run.cases_layout.move(batch, gamma, None, dim=dim)
    wide, compact = scatter.ours(0), gather.ours(0)
    assert scatter.bytes_moved == compact.nbytes + wide.nbytes
    assert gather.bytes_moved == 2 * compact.nbytes
    for moved in (scatter, gather):
        assert 2 * moved.rivals["copy_"](0).nbytes == moved.bytes_moved


def test_readme_shows_the_committed_figures() -> None:
    root = BENCH.parent
    data = json.loads((root / "bench/results/cpu.json").read_text())
    assert table.markdown(data) in (root / "README.md").read_text()
    data = json.loads((root / "bench/results/step.json").read_text())
    assert step.markdown(data) in (root / "README.md").read_text()


def test_step_counts_what_would_launch_and_what_would_wait() -> None:
    x, lens = torch.arange(4), torch.tensor([1, 2], dtype=torch.int32)

    def chosen_on_host(i: int) -> object:
        with record_function(step.ON_HOST):
            rows = (x + 1).sum().item()
        return x * rows

    for work, launches, reads, on_host in (
        (lambda i: x.view(2, 2)[0], 0, 0, 0),
        (lambda i: (x + 1).sum().item(), 2, 1, 0),
        (lambda i: dspark_ops.ragged_layout(lens, 4), 1, 0, 0),
        (chosen_on_host, 1, 0, 2),
    ):
        assert step.count(work) == {"launches": launches, "host_reads": reads, "on_host": on_host}


def test_both_paths_of_a_step_agree() -> None:
    try:
        theirs = rival.load()
    except rival.Unavailable as error:
        pytest.skip(f"SGLang's wheel cannot be had: {error}")
    record = step.measure(theirs, 4, 3, seconds=0.01)
    assert record["ours"]["launches"] < record["sglang"]["launches"]
    assert record["ours"]["on_host"] < record["sglang"]["on_host"]
    assert record["ours"]["host_reads"] == record["sglang"]["host_reads"] == 0
    assert f"{record['ours']['launches']} |" in step.markdown({"records": [record]})
