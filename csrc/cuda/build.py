"""Compiles every kernel for every target with nvcc, refuses spills and local memory, and writes the resource table.

    python csrc/cuda/build.py [--arch sm_90] [--source plan_budget.cu] [--output bench/results/cuda_resources.json]

No GPU is needed. Each file is compiled once per target, so that a failure names both.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ARCHS = ("sm_80", "sm_90", "sm_100", "sm_120")
# No contraction: a fused multiply-add changes the bits of survival and offsets.
FLAGS = ["-std=c++17", "-O3", "-fmad=false", f"-I{HERE.parent}"]
GATE = ["-Xptxas", "-v,-warn-spills,-warn-lmem-usage", "-Werror", "all-warnings"]

_FUNCTION = re.compile(
    r"Compiling entry function '(?P<name>\w+)' for '\w+'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)


class Refused(Exception):
    """A kernel does not compile, or spills."""


def sources() -> list[Path]:
    """The files that hold kernels and launchers."""
    return sorted(HERE.glob("*.cu"))


def source_hash() -> str:
    """Of all that a kernel is compiled from, by which a table that was not made again is known."""
    headers = (p for p in (HERE.parent / "common").glob("*.h") if not re.match(r"bind_|checks", p.name))  # torch's side
    files = sorted([*HERE.glob("*.cu"), *HERE.glob("*.cuh"), HERE / "launchers.h", *headers])
    hashed = hashlib.sha256(" ".join([*FLAGS[:-1], *ARCHS]).encode())
    for path in files:
        hashed.update(b"\0%s\0" % path.name.encode() + path.read_bytes())
    return hashed.hexdigest()[:16]


def targets(arch: str) -> list[str]:
    """nvcc's options for one target; the newest also carries PTX, for what comes after it."""
    number = arch.removeprefix("sm_")
    code = f"[{arch},compute_{number}]" if arch == ARCHS[-1] else arch
    return ["-gencode", f"arch=compute_{number},code={code}"]


def compile_one(source: Path, arch: str, folder: Path) -> list[dict[str, Any]]:
    """Compile one file for one target; returns what ptxas says of each kernel."""
    out = folder / f"{source.stem}.{arch}.o"
    command = ["nvcc", *FLAGS, *GATE, *targets(arch), "-c", str(source), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode != 0:
        said = [line for line in text.splitlines() if re.search("warning|error", line)]
        raise Refused("\n".join([f"{source.name} for {arch}:", *(said or text.splitlines()[-30:])]))
    rows = [_row(source, arch, found) for found in _FUNCTION.finditer(text)]
    for row in rows:
        if row["stack_bytes"] or row["spill_bytes"]:
            raise Refused(f"{source.name} for {arch}: {row['kernel']} uses local memory: {row}")
    return rows


def _row(source: Path, arch: str, found: re.Match[str]) -> dict[str, Any]:
    static = re.search(r"(\d+) bytes smem", found["rest"])
    return {
        "file": source.name,
        "kernel": found["name"],
        "arch": arch,
        "registers": int(found["registers"]),
        "static_shared_bytes": int(static[1]) if static else 0,
        "stack_bytes": int(found["stack"]),
        "spill_bytes": int(found["stores"]) + int(found["loads"]),
    }


def dynamic_shared(folder: Path) -> dict[str, int]:
    """Dynamic shared memory by storage type: the sizes that the launchers pass, as nvcc sees them."""
    program = folder / "storage_sizes"
    source = HERE / "tools/storage_sizes.cu"
    subprocess.run(["nvcc", *FLAGS, *targets(ARCHS[0]), str(source), "-o", str(program)], check=True)
    return json.loads(subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout)


def readable(rows: list[dict[str, Any]]) -> None:
    """Replace mangled names by readable ones where c++filt is installed."""
    if not shutil.which("c++filt"):
        return
    names = "\n".join(row["kernel"] for row in rows)
    plain = subprocess.run(["c++filt"], input=names, capture_output=True, text=True, check=True).stdout.splitlines()
    for row, name in zip(rows, plain, strict=True):
        row["kernel"] = short(name)


def short(name: str) -> str:
    """A kernel's own name and template arguments; for CUB's, the name alone."""
    name = re.sub(r"\(anonymous namespace\)::|dspark::cuda::|^void ", "", name)
    if name.startswith("cub::"):
        return "cub: " + re.split(r"[<(]", name)[0].rsplit("::", 1)[1]
    return re.split(r"\(", name, maxsplit=1)[0]


def table_text(head: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """JSON with one kernel a line, so that a change is a readable difference."""
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    return json.dumps(head, indent=1)[:-2] + ',\n "kernels": [\n' + lines + "\n ]\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", action="append", choices=ARCHS)
    parser.add_argument("--source", action="append")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if not shutil.which("nvcc"):
        print("nvcc is not on PATH", file=sys.stderr)
        return 2
    files = [s for s in sources() if not options.source or s.name in options.source]
    jobs = [(source, arch) for source in files for arch in options.arch or ARCHS]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            rows = [row for part in pool.map(lambda job: compile_one(*job, Path(scratch)), jobs) for row in part]
        except Refused as error:
            print(error, file=sys.stderr)
            return 1
        shared = dynamic_shared(Path(scratch)) if options.output else {}
    readable(rows)
    for row in rows:
        print(f"{row['arch']:7} {row['registers']:4} registers  {row['file']}: {row['kernel']}")
    if options.output:
        version = subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout.split("release ")[1]
        head = {
            "nvcc": version.splitlines()[0],
            "flags": FLAGS[:3],
            "sources": source_hash(),
            "dynamic_shared_bytes": shared,
        }
        options.output.write_text(table_text(head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
