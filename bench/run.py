"""How long does each operator take, and how does that compare with SGLang's own functions in the same run?

    python bench/run.py [--sizes 8x7,64x7,256x7,1024x15] [--seconds 0.3] [--backend cpu] [--json FILE]

One thread, unless --threads says otherwise. Every case first checks that all contestants agree; where they do not, the
run stops without a figure.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import rival
import torch
from cases import cases
from rich.console import Console
from rich.table import Table
from timing import race

import dspark_ops


def machine(threads: int) -> dict[str, Any]:
    """What the figures depend on."""
    names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "cpu": names[0] if names else platform.processor(), "cores": os.cpu_count(), "threads": threads,
        "python": platform.python_version(), "torch": torch.__version__, "dspark_ops": dspark_ops.__version__,
        "commit": commit.stdout.strip(), "rival": f"SGLang {rival.VERSION}",
    }  # fmt: skip


def measure(batch: int, gamma: int, backend: str, seconds: float, s: Any) -> list[dict[str, Any]]:
    """One record per case and contestant at one size."""
    records = []
    # The CPU back end is what the dispatcher picks anyway: left unforced, as a runtime calls it.
    with nullcontext() if backend == "cpu" else dspark_ops.use_backend(backend):
        for case in cases(batch, gamma, s):
            case.check()
            names = list(case.rivals)
            mine, *others = race([case.ours, *case.rivals.values()], seconds)
            records.append(
                {
                    "op": case.op, "B": batch, "gamma": gamma, "backend": backend,
                    "p20_us": round(mine.p20, 2), "p50_us": round(mine.p50, 2), "p80_us": round(mine.p80, 2),
                    "GB_per_s": round(case.bytes_moved / mine.p50 / 1e3, 2) if case.bytes_moved else None,
                    "rival": {n: round(o.p50, 2) for n, o in zip(names, others, strict=True)},
                    "ratio": {n: round(o.p50 / mine.p50, 2) for n, o in zip(names, others, strict=True)},
                }
            )  # fmt: skip
    return records


def show(console: Console, records: list[dict[str, Any]]) -> None:
    """The records as a table."""
    table = Table("operator", "B", "γ", "back end", "p20", "p50 µs", "p80", "GB/s", "rival p50 µs", "ratio")
    for r in records:
        rivals = ", ".join(f"{n} {v:g}" for n, v in r["rival"].items())
        ratios = ", ".join(f"{v:g}×" for v in r["ratio"].values())
        figures = [f"{r[k]:.1f}" for k in ("p20_us", "p50_us", "p80_us")]
        speed = "" if r["GB_per_s"] is None else f"{r['GB_per_s']:.1f}"
        table.add_row(r["op"], str(r["B"]), str(r["gamma"]), r["backend"], *figures, speed, rivals, ratios)
    console.print(table)


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="8x7,64x7,256x7,1024x15", help="comma-separated B x gamma")
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each contestant in each case")
    parser.add_argument("--backend", default="cpu", choices=dspark_ops.available_backends("cpu"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="also write the records to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    console = Console(width=170)
    facts = machine(options.threads)
    console.print(", ".join(f"{k} {v}" for k, v in facts.items()))
    try:
        s = rival.load()
    except rival.Unavailable as reason:
        console.print(f"[bold]No rival here, our figures alone:[/] {reason}")
        s, facts["rival"] = None, f"none: {reason}"
    records = []
    for size in options.sizes.split(","):
        batch, gamma = (int(n) for n in size.split("x"))
        records += measure(batch, gamma, options.backend, options.seconds, s)
    show(console, records)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"machine": facts, "records": records}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
