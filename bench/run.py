"""How long does each operator take, and how does that compare with SGLang's own functions in the same run?

    python bench/run.py [--sizes 8x7,64x7,256x7,1024x15] [--seconds 0.2] [--backend cpu] [--json FILE]

One thread, unless --threads says otherwise. Every case first checks that ours gives the reference's bits and that all
contestants agree; where they do not, the run stops without a figure. The reference back end is the executable
specification: correct, not fast.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import cases_accept
import cases_layout
import cases_planning
import rival
import torch
from case import equals_reference
from rich.console import Console
from rich.table import Table
from timing import race

import dspark_ops
from dspark_ops._files import write_atomic


def machine(threads: int) -> dict[str, Any]:
    """What the figures depend on."""
    names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "cpu": names[0] if names else platform.processor(), "cores": os.cpu_count(), "threads": threads,
        "python": platform.python_version(), "torch": torch.__version__, "dspark_ops": dspark_ops.__version__,
        "commit": commit.stdout.strip(), "rival": f"SGLang {rival.VERSION}",
    }  # fmt: skip


def measure(batch: int, gamma: int, backend: str, seconds: float, s: Any) -> Iterator[dict[str, Any]]:
    """One record per case and rival at one size; a case's results are checked before it is timed."""
    # The CPU back end is what the dispatcher picks anyway: left unforced, as a runtime calls it.
    with nullcontext() if backend == "cpu" else dspark_ops.use_backend(backend):
        for module in (cases_planning, cases_layout, cases_accept):
            for case in module.cases(batch, gamma, s):
                if backend != "reference":
                    equals_reference(case)
                case.check()
                mine, *others = race([case.ours, *case.rivals.values()], seconds)
                record = {
                    "op": case.op, "B": batch, "gamma": gamma, "tier": case.tier, "backend": backend,
                    "p20_us": round(mine.p20, 2), "p50_us": round(mine.p50, 2), "p80_us": round(mine.p80, 2),
                    "GB_per_s": round(case.bytes_moved / mine.p50 / 1e3, 2) if case.bytes_moved else None,
                    "rival": None, "rival_p50_us": None, "ratio": None,
                }  # fmt: skip
                for name, other in zip(case.rivals, others, strict=True):
                    yield record | {
                        "rival": name, "rival_p50_us": round(other.p50, 2), "ratio": round(other.p50 / mine.p50, 2),
                    }  # fmt: skip
                if not others:
                    yield record


COLUMNS = {
    "op": "{}", "B": "{}", "gamma": "{}", "tier": "{}", "backend": "{}", "p20_us": "{:.1f}", "p50_us": "{:.1f}",
    "p80_us": "{:.1f}", "GB_per_s": "{:.1f}", "rival": "{}", "rival_p50_us": "{:.1f}", "ratio": "{:.1f}×",
}  # fmt: skip


def show(console: Console, records: list[dict[str, Any]]) -> None:
    """The records as a table."""
    table = Table(*COLUMNS)
    for record in records:
        table.add_row(*("" if record[k] is None else text.format(record[k]) for k, text in COLUMNS.items()))
    console.print(table)


GOALS = {"allocate_verify_lens (": 10.0, "allocate_verify_lens+": 8.0}  # times SGLang, without and with history


def gate(records: list[dict[str, Any]], console: Console, rival_name: str) -> int:
    """1 if a ratio in this run is below its goal. Ratios only: absolute times differ between machines and hours."""
    judged = [(r, goal) for r in records if r["rival"] == "SGLang" for op, goal in GOALS.items() if op in r["op"]]
    for record, goal in judged:
        if record["ratio"] < goal:
            console.print(f"{record['op']} at ({record['B']}, {record['gamma']}): {record['ratio']}×, goal {goal}×")
    if not judged:
        reason = f"no case of this run has a goal and the rival beside it (rival: {rival_name})"
        console.print(f"gate NOT judged: {reason}", markup=False, soft_wrap=True)
        return 0
    missed = sum(record["ratio"] < goal for record, goal in judged)
    console.print(f"{len(judged) - missed} of {len(judged)} ratios reach their goal")
    return 1 if missed else 0


def main() -> int:
    """Parse, measure, print."""
    here = [name for name in dspark_ops.available_backends("cpu") if name in ("cpu", "reference")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="8x7,64x7,256x7,1024x15", help="comma-separated B x gamma")
    parser.add_argument("--seconds", type=float, default=0.2, help="time for each contestant in each case")
    parser.add_argument("--backend", action="append", choices=here, help="may be given again; default: all of them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a ratio misses its goal")
    parser.add_argument("--json", type=Path, help="also write the records to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    console = Console(width=150)
    facts = machine(options.threads)
    console.print(", ".join(f"{k} {v}" for k, v in facts.items()))
    try:
        s = rival.load()
    except rival.Unavailable as reason:
        console.print(f"[bold]No rival here, our figures alone:[/] {reason}")
        s, facts["rival"] = None, f"none: {reason}"
    records: list[dict[str, Any]] = []
    for size in options.sizes.split(","):
        batch, gamma = (int(n) for n in size.split("x"))
        for backend in options.backend or here:
            records += measure(batch, gamma, backend, options.seconds, s if backend == "cpu" else None)
    show(console, records)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(options.json, json.dumps({"machine": facts, "records": records}, indent=1) + "\n")
    return gate(records, console, facts["rival"]) if options.gate else 0


if __name__ == "__main__":
    sys.exit(main())
