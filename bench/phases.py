"""Which part of the native CPU allocator takes how long? Compiles bench/phases.cpp with the kernels and runs it.

python bench/phases.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent
KERNELS = ("planning", "select", "prefix_survival", "allocate_verify_lens")
COLUMNS = (
    "B",
    "γ",
    "candidates",
    "survival",
    "gather keys",
    "sort",
    "select",
    "search",
    "lengths",
    "whole",
    "with history",
)


def main() -> int:
    """Build into a scratch folder, run, print microseconds."""
    sources = [str(ROOT / "bench/phases.cpp"), *(str(ROOT / f"csrc/cpu/{k}.cpp") for k in KERNELS)]
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/phases"
        flags = ["-O3", "-std=c++17", "-ffp-contract=off", f"-I{ROOT / 'csrc'}"]
        subprocess.run(["g++", *flags, *sources, "-o", program], check=True)
        lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    table = Table(*COLUMNS, title="median µs, one thread, native code alone", title_justify="left")
    for line in lines:
        table.add_row(*line.split())
    Console(width=130).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
