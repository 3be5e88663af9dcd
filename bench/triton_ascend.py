"""Lowers the Triton kernels for Ascend910B1 with Triton-Ascend, without chip or CANN, and says what became of each.

    python bench/triton_ascend.py            lowers everything; writes results/triton_ascend.json and the table in docs
    python bench/triton_ascend.py --stem state_rows

Triton-Ascend takes the place of `triton`, so it gets an environment of its own, made here on first use in the user's
cache; torch comes from the environment that runs this script. Two wheels are fetched (215 MB). The last step of the
compiler is not in them ("Cannot find hivmc"): what is judged is the module before it, in which the unified buffer is
already laid out and every vector instruction is a call. `triton_ascend_lower.py` does the work, in that environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "triton_ascend.json"
DOC = HERE.parent / "docs" / "ascend.md"
BEGIN, END = "<!-- table: bench/triton_ascend.py -->\n", "<!-- end of table -->\n"
WHEELS = ("triton-ascend==3.2.0", "ascendnpu-ir==1.2.0", "pybind11==3.1.0")
OUTCOMES = ("vectorised", "scalar loop", "refused")


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dspark_ops" / "triton-ascend-3.2.0"


def environment(folder: Path) -> Path:
    """The interpreter of an environment with Triton-Ascend; SystemExit, saying why, where it cannot be made."""
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if ready.exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", *WHEELS]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode:
        version = ".".join(map(str, sys.version_info[:2]))
        said = done.stderr.splitlines() or ["pip gave no reason"]
        reason = [line for line in said if line.startswith("ERROR")] or said
        raise SystemExit(
            f"Triton-Ascend cannot be had here: {' '.join(WHEELS)} for Python {version} on {sysconfig.get_platform()} "
            f"(there are wheels for Python 3.11 on Linux x86-64): {reason[-1]}"
        )
    # Behind its own packages it sees those of this environment, so that torch is not installed twice.
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n")
    ready.touch()
    return python


def lower(python: Path, stems: list[str]) -> dict[str, Any]:
    """What became of every variant, from a process of that environment."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    paths = [str(HERE.parent), str(HERE), env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    done = subprocess.run([python, HERE / "triton_ascend_lower.py", *stems], env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"triton_ascend_lower.py ended with status {done.returncode}")
    return json.loads(done.stdout[done.stdout.index("\n{") :])


def judge(module: str) -> dict[str, int]:
    """Vector calls and serial loops of a module.

    A loop is scalar if its own body reads or writes single elements of a buffer and calls no vector instruction; it is
    a row loop if it does nothing but call one on each row of a buffer (what a layout of one element a row becomes).
    """
    counts = {"vector_calls": 0, "scalar_loops": 0, "row_loops": 0}
    stack: list[dict[str, int]] = []
    for line in module.splitlines():
        word = line.strip()
        if re.search(r"\bcall @(?!load_|store_|copy_)", word):
            counts["vector_calls"] += 1
            for loop in stack[-1:]:
                loop["calls"] += 1
        if "memref.load" in word or "memref.store" in word:
            for loop in stack[-1:]:
                loop["elements"] += 1
        if "scf.for" in word:
            for loop in stack:
                loop["inner"] += 1
            stack.append({"calls": 0, "elements": 0, "inner": 0, "indent": len(line) - len(line.lstrip())})
        elif stack and word.startswith("}") and len(line) - len(line.lstrip()) == stack[-1]["indent"]:
            loop = stack.pop()
            counts["scalar_loops"] += bool(loop["elements"]) and not loop["calls"]
            counts["row_loops"] += loop["calls"] == 1 and not loop["elements"] and not loop["inner"]
    return counts


def table(results: dict[str, Any]) -> str:
    """A row for each kernel: its variants by outcome, the loops of those that lower, and why others were refused."""
    lines = [
        "| operators | kernel | vectorised | scalar loop | refused | what stands in the way |",
        "|---|---|---|---|---|---|",
    ]
    kernels: dict[str, list[dict[str, Any]]] = {}
    for variant in results["variants"]:
        kernels.setdefault(variant["kernel"], []).append(variant)
    for name, variants in kernels.items():
        counts = [sum(v["outcome"] == outcome for v in variants) for outcome in OUTCOMES]
        stems = dict.fromkeys(f"`{stem}`" for v in variants for stem in v["operators"])
        scalar = [v for v in variants if v["outcome"] == "scalar loop"]
        reasons = Counter(v["reason"].partition(", requires")[0] for v in variants if v["outcome"] == "refused")
        notes = [text if len(reasons) == 1 else f"{n} × {text}" for text, n in reasons.items()]
        if scalar:
            loops, calls = (sorted(v[k] for v in scalar) for k in ("scalar_loops", "vector_calls"))
            notes.insert(0, f"{span(loops)} scalar loops beside {span(calls)} vector calls")
        cells = [", ".join(stems), f"`{name}`", *(str(n or "") for n in counts), "; ".join(notes)]
        lines.append("| " + " | ".join(cells) + " |")
    totals = (sum(v["outcome"] == outcome for v in results["variants"]) for outcome in OUTCOMES)
    lines.append("| all | | " + " | ".join(map(str, totals)) + " | |")
    return "\n".join(lines) + "\n"


def span(values: list[int]) -> str:
    return str(values[0]) if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


def write(results: dict[str, Any]) -> None:
    """The results, and the table in the document between its two marks."""
    sys.path.insert(0, str(HERE.parent))
    from dspark_ops._files import write_atomic

    write_atomic(RESULTS, json.dumps(results, indent=1) + "\n")
    text = DOC.read_text()
    head, rest = text.split(BEGIN)
    write_atomic(DOC, head + BEGIN + table(results) + END + rest.split(END)[1])
    print(f"written: {RESULTS.relative_to(HERE.parent)} and the table of {DOC.relative_to(HERE.parent)}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stem", action="append", default=[], help="operators; default all. Then nothing is written")
    parser.add_argument("--environment", type=Path, default=cache_folder(), help="where Triton-Ascend lies or is put")
    options = parser.parse_args(argv)
    results = lower(environment(options.environment), options.stem)
    print(table(results), end="")
    if not options.stem:
        write(results)


if __name__ == "__main__":
    main()
