"""The Triton kernels compile for GPUs that are not here, without spills or contraction; and the gate trips."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed"),
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter compiles nothing"),
]
TESTS = Path(__file__).parent
ROOT = TESTS.parent
AOT = ROOT / "bench" / "aot.py"


def run(script: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, str(script), *args], env=env, capture_output=True, text=True)


def test_two_operators_for_one_gpu() -> None:
    done = run(AOT, "--stem", "schedule_verify_lens", "--stem", "max_safe_verify_len", "--target", "sm_90")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "given budget, tiers 512x7: 1 launches" in done.stdout and done.stdout.endswith(" 0 with faults\n")


def test_a_spill_and_a_contracted_product_are_faults() -> None:
    done = run(TESTS / "triton_calls.py", "planted")
    faults = [line for line in done.stdout.splitlines() if line.startswith("FAULT")]
    assert done.returncode == 1, done.stdout + done.stderr
    assert [line.split()[1:3] for line in faults] == [
        ["__main__.spilling", "sm_90"], ["__main__.contracted", "sm_90"], ["__main__.contracted", "gfx942"],
    ]  # fmt: skip
    assert "bytes of local memory" in faults[0] and "1 float32 multiply-adds" in faults[1]


def test_the_committed_report_is_whole_and_the_documents_say_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(AOT.parent))
    import aot

    report = json.loads((ROOT / "bench/results/triton_aot.json").read_text())
    variants = [aot.Variant(**v) for v in report["variants"]]
    assert [v for v in variants if v.faults] == []
    assert sorted({(v.kernel, v.target) for v in variants}) == sorted(itertools.product(kernels(), aot.TARGETS))

    text = (ROOT / "docs/triton.md").read_text()
    version = "Triton " + report["versions"]["triton"]
    assert version in text and version in (ROOT / "README.md").read_text()
    assert f"{len(variants)} variants none spills" in text
    most = max(v.registers for v in variants), max(v.shared for v in variants) // 1024
    assert "{} registers a thread and {} KiB".format(*most) in text
    assert report["launches"].keys() == set(aot.aot_calls.stems())
    for stem, counts in report["launches"].items():
        assert f"| `{stem}` | {min(counts.values())} | {max(counts.values())} |\n" in text


def test_amd_usage_counts_private_memory_and_spills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(AOT.parent))
    import aot

    text = "    .private_segment_fixed_size: 8\n    .vgpr_count:     12\n    .vgpr_spill_count: 3\n"
    assert aot.amd_usage(text) == (12, 8 + 3 * 4)


def kernels() -> list[str]:
    """All that the sources launch."""
    kernel = re.compile(r"^@(?:jit|partial\(jit, .*\))\ndef (\w+)", re.MULTILINE)
    sources = (ROOT / "dspark_ops" / "triton").glob("*.py")
    return sorted(f"{path.stem}.{name}" for path in sources for name in kernel.findall(path.read_text()))


def test_no_kernel_looks_into_a_number() -> None:
    """Whatever changes from step to step is an argument that is not specialised on; one kernel is planted that is."""
    done = run(TESTS / "triton_calls.py", "warm", "numbers")
    warmed, launched, *doubts = done.stdout.splitlines()
    assert warmed.endswith(" and 0 more")
    assert launched.split() == ["__main__.planted_numbers", *kernels()], done.stderr
    assert doubts == ["__main__.N = 3", "__main__.rows is looked into"]


def test_numbers_that_change_compile_nothing_anew() -> None:
    """Batch, budget, base, bounds, tiers and alignment change; the padded shape and the argument form do not."""
    done = run(TESTS / "triton_calls.py", "variants")
    assert done.stdout == "launches 15 kernels 1\n", done.stdout + done.stderr
