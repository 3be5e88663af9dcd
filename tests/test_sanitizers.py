"""The native operators under AddressSanitizer and UndefinedBehaviorSanitizer, on the suite's own cases.

Tensors come from the sanitizer's allocator, so a read or write past one of them, or past the kernels' scratch, aborts.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from workshop import Workshop

# Every operator on random cases, whose lengths, slots, tiers, rows and budgets are often out of range.
EQUAL = "tests/test_operators.py::test_equals_reference"
CASES = (EQUAL, "tests/test_schedule_verify_lens.py", "tests/test_hostile.py")
FAULTS = {
    "slot": ("csrc/cpu/prefix_survival.cpp", "row >= 0 && row < in.rows", "row >= -1 && row < in.rows + 2"),
    "cost row": ("csrc/common/order.h", "clamp64(rows, 0, length - 1)", "rows"),
    "row capacity": ("csrc/cpu/ragged_layout.cpp", "begin, min64(total, p.rows));", "begin, total);"),
    "target row": ("csrc/cpu/accept.h", "return i >= 0 && i < p.target_rows ?", "return i >= 0 ?"),
    "overflow": ("csrc/common/order.h", "clamp64(base, -bound, bound) + step_ns", "base + step_ns"),
}
REPORT = re.compile(r"ERROR: AddressSanitizer|runtime error: signed integer overflow")


def runtime(name: str) -> str:
    return subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    preload = [runtime("libasan.so"), runtime("libubsan.so")]
    if not all(Path(p).is_absolute() for p in preload):
        pytest.skip("g++ has no sanitizer runtime here")
    shop = Workshop(tmp_path_factory.mktemp("sanitized"), DSPARK_SANITIZE="1")
    shop.build()
    shop.run_env = {
        "LD_PRELOAD": " ".join(preload),
        "ASAN_OPTIONS": "detect_leaks=0",  # CPython itself never frees everything
    }
    return shop


def test_suite_is_clean(shop: Workshop) -> None:
    done = shop.run("-k", "not cuda_host", *CASES)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.full
def test_refusals_are_clean(shop: Workshop) -> None:
    done = shop.run("-k", "not cuda_host", "tests/test_bad_input.py")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("fault", [f if f == "slot" else pytest.param(f, marks=pytest.mark.full) for f in FAULTS])
def test_planted_fault_is_reported(shop: Workshop, fault: str) -> None:
    file, old, new = FAULTS[fault]
    before = shop.replace(file, old, new)
    try:
        shop.build()
        done = shop.run("-k", "not cuda_host", "tests/test_hostile.py", EQUAL)
    finally:
        shop.restore(file, before)
    assert done.returncode != 0 and REPORT.search(done.stdout + done.stderr), done.stdout[-3000:]
