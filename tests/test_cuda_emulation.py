"""The emulation of CUDA reports each class of mistake that it claims to catch; cuda_faults.cu plants one of each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dspark_ops import _emulation, cuda_host

FAULTS = Path(__file__).parent / "cuda_faults.cu"

# Fault -> what the program prints (or what the sanitizer writes).
ALWAYS = {
    "clean": "no error, out[0] = 64",
    "poisoned": "no error, out[0] = 42",
    "divergent_barrier": "divergent barrier: threads wait at",
    "barrier_after_exit": "that some threads never reach",
    "missing_lane": "deadlock",
    "lane_outside_mask": "whose mask leaves it out",
    "reads_absent_lane": "a lane that is not in its mask",
    "lanes_meet_elsewhere": "meet at different places",
    "block_too_large": "invalid configuration argument",
    "empty_grid": "invalid configuration argument",
    "grid_too_high": "invalid configuration argument",
    "shared_not_asked_for": "invalid configuration argument",
    "shared_past_target": "invalid argument",
}
RACES = {
    "clean": "no error, out[0] = 64",
    "read_before_barrier": "race: write after a read without a barrier",
    "write_after_read": "race: read after a write without a barrier",
    "two_writes": "race: two writes",
    "missing_syncwarp": "race:",
    "atomic_and_plain": "race:",
    "blocks_write_one_place": "race: two writes",
    "unwritten_dynamic": "read of shared memory that no thread has written",
    "unwritten_static": "read of shared memory that no thread has written",
}
ADDRESS = {
    "clean": "no error, out[0] = 64",
    "divergent_barrier": "divergent barrier: threads wait at",
    "past_dynamic_shared": "AddressSanitizer: use-after-poison",
    "past_static_shared": "AddressSanitizer: global-buffer-overflow",
    "past_global": "AddressSanitizer: heap-buffer-overflow",
    "misaligned": "misaligned address",
    "overflow": "signed integer overflow",
}
CASES = [(check, name) for check, faults in (("", ALWAYS), ("races", RACES), ("address", ADDRESS)) for name in faults]

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory):
    """Builds cuda_faults with one kind of checks, once each."""
    built: dict[str, Path] = {}

    def build(check: str) -> Path:
        if check not in built:
            folder = tmp_path_factory.mktemp(f"faults_{check}")
            machine = sorted((_emulation.sources() / "emulation/cuda_on_host").glob("*.cpp"))
            out = folder / "faults"
            command = cuda_host.compile_command(check)
            objects = [folder / "faults.o"]
            instrumented = cuda_host.CHECKS[check] if check == "races" else []
            _compile([*command, *instrumented, "-x", "c++", "-c", str(FAULTS), "-o", str(objects[0])])
            _compile([*command, *map(str, machine), str(objects[0]), "-o", str(out)])
            built[check] = out
        return built[check]

    return build


def _compile(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(("check", "name"), CASES)
def test_fault_is_reported(check: str, name: str, program) -> None:
    expected = {"": ALWAYS, "races": RACES, "address": ADDRESS}[check][name]
    done = subprocess.run([str(program(check)), name], capture_output=True, text=True)
    assert expected in done.stdout + done.stderr, done.stdout + done.stderr[-2000:]


def test_stack_overflow_does_not_go_unnoticed(program) -> None:
    assert subprocess.run([str(program("")), "stack_overflow"]).returncode < 0
