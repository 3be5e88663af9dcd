"""Prints the README's table from a result file of bench/run.py.

python bench/table.py bench/results/cpu.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SHOWN = {
    "allocate_verify_lens (additive)": "allocate, additive cost",
    "allocate_verify_lens (floor)": "allocate, 1D cost",
    "allocate_verify_lens+history (additive)": "allocate with history, additive",
    "allocate_verify_lens+history+fill (floor)": "allocate with history and tier fill, 1D",
    "ragged_layout": "ragged_layout",
    "pad_to_bucket": "pad_to_bucket",
    "finalize_accept": "finalize_accept",
    "scatter_to_strided bf16 D=4096": "scatter_to_strided, bf16, D = 4096",
}


def markdown(data: dict[str, Any], rival: str = "SGLang") -> str:
    """Our median, the rival's and their ratio, by operator and size."""
    records = [r for r in data["records"] if r["backend"] == "cpu" and r["rival"] == rival]
    sizes = list(dict.fromkeys((r["B"], r["gamma"]) for r in records))
    lines = ["| µs: ours, SGLang's, ratio | " + " | ".join(f"B = {b}, γ = {g}" for b, g in sizes) + " |"]
    lines.append("|---" * (len(sizes) + 1) + "|")
    for op, label in SHOWN.items():
        found = {(r["B"], r["gamma"]): r for r in records if r["op"] == op}
        here = [found[size] for size in sizes]
        cells = (f"{r['p50_us']:.1f}, {r['rival_p50_us']:.0f}, **{r['ratio']:.1f}×**" for r in here)
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    m = data["machine"]
    setting = f"{m['threads']} thread, {m['cpu']} ({m['cores']} cores), torch {m['torch']}, commit {m['commit']}"
    lines += [
        "",
        f"Medians; {setting}; {m['rival']}'s own CPU functions in the same run:",
        "`python bench/run.py --json bench/results/cpu.json`.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text())))
