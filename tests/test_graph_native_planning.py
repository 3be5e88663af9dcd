"""The examples of planning without the host: the device part emulated, the whole program compiled, never run."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from test_cuda_build import gate
from workshop import ROOT

import dspark_ops
from dspark_ops import _emulation, cuda_host

EXAMPLE = ROOT / "examples/graph_native_planning"
LAUNCHERS = ("allocate_verify_lens", "large", "plan_budget", "ragged_layout")
TIERS = [64, 96, 128, 192, 256, 320, 384, 448, 512]
needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed: the example is NOT compiled")


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The device part for the CPU. The package's own units come from the cache that the back end cuda_host fills."""
    if not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("graph_native_planning")
    machine = sorted((_emulation.sources() / "emulation/cuda_on_host").glob("*.cpp"))
    units = [*(_emulation.sources() / f"cuda/{stem}.cu" for stem in LAUNCHERS), *machine]
    objects = [cuda_host.compile_unit(unit, "", folder) for unit in units]
    main = Path(__file__).with_name("graph_native_planning.cpp")
    command = [*cuda_host.compile_command(), f"-I{EXAMPLE}", str(main), *map(str, objects), "-o", str(folder / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "run"


def run(program: Path, confidence: torch.Tensor, tiers: list[int], step_ns: list[int]) -> dict[str, Any]:
    numbers = [*confidence.shape, len(tiers), *tiers, *step_ns, *(c.hex() for c in confidence.flatten().tolist())]
    text = " ".join(map(str, numbers))
    done = subprocess.run([str(program)], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("low_high", [(0, 0.1), (0, 0.4), (0, 0.7), (0, 1), (0.2, 1), (0.4, 1), (0.9, 1)])
def test_the_chosen_body_is_the_tier_of_the_plan(low_high: tuple[float, float], emulated: Path) -> None:
    low, high = low_high
    c = low + (high - low) * torch.rand(64, 7, generator=torch.Generator().manual_seed(0))
    step_ns = [8_000_000 + 20_000 * rows for rows in range(513)]  # no staircase, or there would be nothing to fill
    row = torch.tensor(step_ns, dtype=torch.int32)
    tiers = torch.tensor(TIERS, dtype=torch.int32)
    got = run(emulated, c, TIERS, step_ns)
    plan = dspark_ops.allocate_verify_lens(c, row, search="global", max_rows=512, tiers=tiers, fill_tier=True)
    tier = int(plan.stats[2])
    assert got["stats"] == plan.stats.tolist() and got["wanted"] == got["stats"]
    assert got["body"] == TIERS.index(tier) and got["ifs"] == [int(t == tier) for t in TIERS]
    one = tiers[len(TIERS) // 2 :][:1]
    within = dspark_ops.allocate_verify_lens(c, row, search="global", max_rows=int(one), tiers=one, fill_tier=True)
    assert got["within"] == within.stats.tolist() and within.stats[2] == one
    layout = dspark_ops.ragged_layout(plan.verify_lens, tier)
    assert got["row_request"] == layout.row_request.tolist() + [-7] * (512 - tier)


def test_without_a_fitting_graph_no_body_runs(emulated: Path) -> None:
    got = run(emulated, torch.full((64, 7), 0.5), [16, 32, 48], [8_000_000] * 513)
    assert got["stats"][2] == -1 and got["body"] == 3 and got["ifs"] == [0, 0, 0]


@needs_nvcc
def test_it_compiles_for_every_target(tmp_path: Path) -> None:
    targets = [option for arch in gate.ARCHS for option in gate.targets(arch)]
    warnings = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra"]
    command = ["nvcc", *gate.FLAGS, *targets, *warnings, "-c", str(EXAMPLE / "main.cu"), "-o", str(tmp_path / "main.o")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@needs_nvcc
@pytest.mark.full
def test_it_builds_as_its_readme_says_and_runs_or_tells_why_not(tmp_path: Path) -> None:
    """Where there is a GPU the program checks itself: the graph that ran is that of the plan's tier."""
    command = re.search(r"^nvcc (?:.*\\\n)*.*$", (EXAMPLE / "README.md").read_text(), re.M)
    assert command is not None
    program = tmp_path / "graph_native_planning"
    words = [str(program) if word == program.name else word for word in shlex.split(command[0].replace("\\\n", " "))]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    for mode in ("switch", "if", "read", "later"):
        done = subprocess.run([str(program), mode], capture_output=True, text=True)
        if torch.cuda.is_available():
            assert done.returncode == 0 and done.stdout.count("graph of") == 20, done.stdout + done.stderr
        else:
            assert done.returncode == 2 and "CUDA driver" in done.stderr


def test_reading_the_tier_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/read_tier_async.py"))
    first, *steps = capsys.readouterr().out.splitlines()
    assert first.startswith("no GPU here") != torch.cuda.is_available()
    assert [line.split(":")[0] for line in steps] == [f"step {i}" for i in range(5)]
    rows = [int(line.split()[-2]) for line in steps]
    assert rows == sorted(rows) and len(set(rows)) > 1
