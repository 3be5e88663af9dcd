"""CUDA sources under emulation: sizes around every choice of the launchers, alignments, orders of threads, and checks.

That each operator equals the reference on random cases is in test_operators.py, for this back end as for the others.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_sizes import KINDS, plan_arguments
from test_optimality import decisions
from test_sanitizers import runtime
from workshop import ROOT, Workshop

import dspark_ops
from dspark_ops import _registry, cuda_host
from dspark_ops.testing import case, compare, run, written
from dspark_ops.testing.compare import assert_same, confidence_form
from dspark_ops.testing.generate import ints, poison
from dspark_ops.testing.planning import cost_row

sys.path.insert(0, str(ROOT / "bench"))
import cuda_table
import device_cases

BACKEND = "cuda_host"
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")

# Keys B·γ at and past the capacity of each sort, and of one block; long rows, wide batches.
SHAPES = [
    (128, 1), (129, 1), (73, 7), (74, 7), (292, 7), (293, 7), (877, 7), (878, 7), (1092, 15), (1093, 15),
    (16384, 1), (16385, 1), (1, 16384), (1, 16385), (3000, 7),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["global", "first_drop", "history", "budget"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
def test_plans_of_every_size(shape: tuple[int, int], mode: str) -> None:
    kind = KINDS[(SHAPES.index(shape) + len(mode)) % len(KINDS)]
    for stem, args in plan_arguments(*shape, kind, mode).items():
        compare(stem, args, BACKEND)


@pytest.mark.parametrize("kind", KINDS)
def test_ties_that_are_split(kind: str) -> None:
    for batch, gamma in ((17, 7), (200, 7), (2500, 7)):
        compare("allocate_verify_lens", plan_arguments(batch, gamma, kind, "budget")["allocate_verify_lens"], BACKEND)


@pytest.mark.parametrize("batch", [255, 256, 257, 4096, 4097, 9000])
def test_layouts_of_every_size(batch: int) -> None:
    rng = Random(batch)
    lens, prefix = ints(rng, batch, 0, 8), ints(rng, batch, 0, 5000)
    rows = int(lens.sum()) + 77
    cu = poison([batch + 1], torch.int32)
    drafts = ints(rng, batch * 7, 0, 99, torch.int64).reshape(batch, 7)
    compare(
        "ragged_layout",
        (
            lens, prefix, ints(rng, batch, 0, 99, torch.int64), drafts, cu, poison([rows], torch.int32),
            poison([rows], torch.int32), poison([rows], torch.int64), poison([rows], torch.int64),
            poison([batch], torch.int32), cu.clone(),
        ),
        BACKEND,
    )  # fmt: skip
    offsets = torch.cat([torch.zeros(1, dtype=torch.int32), lens.cumsum(0, dtype=torch.int32)])
    tables: list[Any] = []
    for ratio in (4, 128):
        c = min(rows, rows // ratio + batch)
        tables.append([cu.clone(), poison([c], torch.int64), poison([c], torch.int32), poison([c], torch.int32)])
    pages = ints(rng, batch * 9, -1, 500).reshape(batch, 9)
    per_request = [poison([batch], torch.int32) for _ in range(3)]
    compare(
        "compressor_layout",
        (offsets, lens, prefix, rows, True, 4, pages, 64, -1, 128, pages, 2, -1, *per_request, *tables[0], *tables[1]),
        BACKEND,
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_result_does_not_depend_on_the_order_of_threads(seed: int) -> None:
    with cuda_host.schedule(seed, poison=(0xA5, 0x00, 0xFF)[seed]):
        for stem in _registry.stems():
            for i in range(12):
                compare(stem, case(stem, 1000 * seed + i), BACKEND)
        for stem, args in plan_arguments(293, 7, "ties", "history").items():
            compare(stem, args, BACKEND)


@settings(max_examples=60, deadline=None)
@given(decisions(), st.integers(0, 1 << 32), st.sampled_from(["global", "first_drop"]))
def test_any_decision_in_any_order_of_threads(
    decision: tuple[torch.Tensor, dict[str, Any]], seed: int, search: str
) -> None:
    confidence, rules = decision
    step_ns = cost_row(Random(seed), confidence.shape[0] * (confidence.shape[1] + 1))
    plans = []
    for backend in ("reference", BACKEND):
        with cuda_host.schedule(seed), dspark_ops.use_backend(backend):
            plans.append(dspark_ops.allocate_verify_lens(confidence, step_ns, search=search, **rules))
    for want, got in zip(*plans, strict=True):
        assert want is got is None or torch.equal(want, got)


def test_other_targets_have_room_too() -> None:
    with pytest.raises(RuntimeError, match="invalid argument"), cuda_host.schedule(shared_limit=64 << 10):
        compare("plan_budget", plan_arguments(1092, 15, "near", "global")["plan_budget"], BACKEND)


@pytest.mark.parametrize("line", cuda_table.LINES, ids=lambda line: line.case)
def test_launches_are_those_of_the_table(line: cuda_table.Line) -> None:
    args = device_cases.make(line.case, cuda_table.BATCH, cuda_table.GAMMA, 3)
    assert launches_of(device_cases.stem_of(line.case), args) == line.launches


@pytest.mark.parametrize(("mode", "expected"), [("global", (2, 2, 2)), ("history", (3, 2, 2)), ("budget", (2, 2, 2))])
def test_launches_past_one_block(mode: str, expected: tuple[int, ...]) -> None:
    """Without CUB's device sort, which comes on top where a budget is searched."""
    plans = plan_arguments(16385, 1, "uniform", mode)
    assert tuple(launches_of(stem, args) for stem, args in plans.items()) == expected


def launches_of(stem: str, args: tuple[Any, ...]) -> int:
    before = cuda_host.launches()
    getattr(torch.ops.dspark_cuda_host, stem).default(*args)
    return cuda_host.launches() - before


def at_offset(t: torch.Tensor, elements: int) -> torch.Tensor:
    """A copy that begins so many elements after an aligned address, and ends where its memory ends."""
    if not t.is_contiguous():
        return t.clone()
    return torch.empty(t.numel() + elements, dtype=t.dtype)[elements:].view(t.shape).copy_(t)


@pytest.mark.parametrize("stem", _registry.stems())
def test_every_pointer_at_every_alignment(stem: str) -> None:
    """Of 16 bytes, which no element but the moves' may count on; neighbours differ."""
    for seed in range(16):
        args = case(stem, seed)
        shifted = tuple(
            at_offset(a, (seed + i) % max(1, 16 // a.element_size())) if isinstance(a, torch.Tensor) else a
            for i, a in enumerate(args)
        )
        getattr(torch.ops.dspark_cuda_host, stem).default(*shifted)
        want = run(stem, confidence_form(stem, args, BACKEND), "reference")
        for i, name in written(stem):
            if isinstance(args[i], torch.Tensor):
                assert_same(stem, name, shifted[i], want[i])


@pytest.mark.parametrize("row_bytes", [5, 48, 300])
@pytest.mark.parametrize("stem", ["scatter_to_strided", "gather_from_strided"])
def test_moves_at_every_alignment(stem: str, row_bytes: int) -> None:
    width, cu = 3, torch.tensor([0, 2, 2, 5], dtype=torch.int32)
    rows = {"scatter_to_strided": (6, 9), "gather_from_strided": (9, 6)}[stem]
    source = torch.arange(rows[0] * row_bytes + 32, dtype=torch.int32).to(torch.uint8)
    out = torch.empty(rows[1] * row_bytes + 32, dtype=torch.uint8)
    op = getattr(torch.ops.dspark_cuda_host, stem).default
    reference = getattr(torch.ops.dspark_reference, stem).default

    def call(kernel: Any, at_source: int, at_out: int) -> torch.Tensor:
        out.fill_(0xAB)
        views = [
            t[at:][: n * row_bytes].view(n, row_bytes)
            for t, at, n in zip((source, out), (at_source, at_out), rows, strict=True)
        ]
        kernel(views[0], cu, *([width] if stem[0] == "s" else []), 0x5C, views[1])
        return out.clone()

    for at_source in range(16):
        for at_out in range(16):
            got = call(op, at_source, at_out)
            assert torch.equal(got, call(reference, at_source, at_out)), (at_source, at_out)


def run_checked(check: str, *tests: str, folder: Path = ROOT, cache: Path | None = None) -> str:
    """Run these tests in another process on a library built with `check`; returns the output, empty if all passed."""
    env = {**os.environ, "DSPARK_CUDA_HOST_CHECK": check}
    if cache is not None:
        env["XDG_CACHE_HOME"] = str(cache)
    if check == "address":
        env["LD_PRELOAD"] = f"{runtime('libasan.so')} {runtime('libubsan.so')}"
        env["ASAN_OPTIONS"] = "detect_leaks=0"  # CPython itself never frees everything
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:faulthandler",
        "-k",
        BACKEND,
        *tests,
    ]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


EQUAL = "tests/test_operators.py::test_equals_reference"
HERE = "tests/test_cuda_host.py"


@pytest.mark.parametrize("check", ["races", pytest.param("address", marks=pytest.mark.full)])
def test_operators_are_clean(check: str) -> None:
    """Every operator on random and hostile cases, past one block, and at every alignment."""
    names = ["test_ties_that_are_split", "test_layouts_of_every_size", "test_moves_at_every_alignment"]
    names += ["test_every_pointer_at_every_alignment"]
    names += [f"test_plans_of_every_size[16385x1-{mode}]" for mode in ("first_drop", "history", "budget")]
    output = run_checked(check, EQUAL, "tests/test_hostile.py", *(f"{HERE}::{name}" for name in names))
    assert not output, output[-3000:]


# name: (what must be built, the file, the text, its replacement, the test that must notice, what it must say)
MUTANTS = {
    "one tie too many": (
        "", "csrc/cuda/assign.cuh", "rank < rule.left", "rank <= rule.left",
        "tests/test_schedule_verify_lens.py", "test_ties_go_by_position_then_request",
    ),
    "the selection starts one digit late": (
        "", "csrc/cuda/cut.cuh", "int shift = kKeyBits - kDigitBits", "int shift = kKeyBits - 2 * kDigitBits",
        "tests/test_schedule_verify_lens.py", "FAILED",
    ),
    "no barrier between ranking and writing": (
        "races", "csrc/cuda/sort.cuh", "    __syncthreads();\n    if (i < n) storage", "    if (i < n) storage",
        f"{EQUAL}", "race: ",
    ),
    "no barrier before histogram bins are read": (
        "races", "csrc/cuda/cut.cuh", "    __syncthreads();\n    if (threadIdx.x < 32)", "    if (threadIdx.x < 32)",
        f"{EQUAL}", "race: ",
    ),
    "slots are not bounded": (
        "address", "csrc/cuda/survival.cuh", "row < in.rows;", "row < in.rows + 2;", f"{EQUAL}", "AddressSanitizer",
    ),
    "vector accesses start anywhere": (
        "address", "csrc/cuda/moves.cuh", "min64(bytes, int64_t(-reinterpret_cast<uintptr_t>(to) & (kSize - 1)))", "0",
        f"{HERE}::test_moves_at_every_alignment", "misaligned address",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    shop = Workshop(tmp_path_factory.mktemp("cuda_mutants"))
    shop.own_cache()
    return shop


@pytest.mark.full
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_caught(mutant: str, shop: Workshop) -> None:
    check, file, old, new, test, message = MUTANTS[mutant]
    before = shop.replace(file, old, new)
    try:
        output = run_checked(check, test, folder=shop.folder, cache=shop.folder / "cache")
    finally:
        shop.restore(file, before)
    assert message in output, output[-3000:]
