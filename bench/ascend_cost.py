"""What the Ascend kernels execute, counted by the emulation: vector instructions, repeats, scalar accesses, copies.

    python bench/ascend_cost.py [--output bench/results/ascend_cost.json]

Counts, not times: nothing here ran on an NPU. Each call is compared with the reference before it is counted; counts
are sums over its cores. Plans: confidences are smooth (1 - u^4), step times a staircase of 32 rows with a slope, caps
as they come. All other operators: the inputs of bench/cases_layout.py and bench/cases_accept.py.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cases_accept
import cases_layout
import torch
from case import Case, equals_reference

import dspark_ops
from dspark_ops import ascend_host
from dspark_ops._backends import get_backend
from dspark_ops.testing import compare

BATCHES = (8, 64, 256)
GAMMAS = (5, 7)
REPEATS = 5
# Counter: heading.
SHOWN = {
    "blocks": "cores", "vector_instructions": "vector", "vector_repeats": "repeats", "gathers": "gather",
    "sorts": "sort", "scalar_reads": "S read", "scalar_writes": "S write", "scalar_gm_reads": "S GM",
    "loads": "MTE2", "load_bytes": "bytes", "stores": "MTE3", "store_bytes": "bytes",
}  # fmt: skip
Call = tuple[str, str, tuple[Any, ...]]


def _empty(shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype)


def calls(batch: int, gamma: int, seed: int) -> Iterator[Call]:
    """(stem, form, arguments of the dispatcher schema)."""
    g = torch.Generator().manual_seed(seed)
    rows = batch * (gamma + 1)
    c, old = (1 - torch.rand(batch, gamma, generator=g) ** 4 for _ in range(2))
    m = torch.arange(rows + 1)
    step_ns = (20_000_000 + m * 20_000 + torch.div(m + 31, 32, rounding_mode="floor") * 400_000).int()
    survival = c.cumprod(1)
    cost, rules = (step_ns, 0, None), (None, 1, 0, 1e-6)
    lens, stats = _empty([batch], torch.int32), _empty([5], torch.int64)
    none = (None,) * 4
    slots = torch.randperm(2 * batch, generator=g)[:batch].int()
    spread = torch.zeros(2 * batch, gamma).index_copy(0, slots.long(), c)
    generation = torch.ones(2 * batch, dtype=torch.int64)
    plan = (lens, _empty([batch + 1], torch.int32), _empty([batch, gamma], torch.float32), stats, None)

    def survive(values: torch.Tensor, is_logits: bool, scale: torch.Tensor | None) -> tuple[Any, ...]:
        out = _empty([batch, gamma], torch.float32)
        return (values, is_logits, scale, scale, None, None, None, False, None, None, None, out, None)

    def allocate(
        values: torch.Tensor, at: torch.Tensor | None, history: Any, budget: int, search: int
    ) -> tuple[Any, ...]:
        return (
            values, False, None, None, None, at, *history, budget, None, *cost, *rules, search, -1, 0, None, False,
            *plan,
        )  # fmt: skip

    yield "prefix_survival", "confidence", survive(c, False, None)
    yield "prefix_survival", "logits", survive(c.logit(), True, torch.ones(gamma))
    yield "plan_budget", "global", (survival, *cost, *rules, 0, -1, 0, None, False, stats, None)
    yield "plan_budget", "first_drop", (survival, *cost, *rules, 1, -1, 0, None, False, stats, None)
    yield "schedule_verify_lens", "", (survival, rows // 3, None, *cost, *rules, -1, None, False, lens, stats)
    yield "allocate_verify_lens", "current", allocate(c, None, (None, *none), -1, 0)
    yield "allocate_verify_lens", "budget given", allocate(c, None, (None, *none), rows // 3, 0)
    yield "allocate_verify_lens", "history", allocate(c, None, (old, *none), -1, 0)
    by_slot = (spread, slots, None, generation, torch.ones(batch, dtype=torch.int64))
    yield "allocate_verify_lens", "history by slot", allocate(spread, slots, by_slot, -1, 0)


def _medians(counts: list[dict[str, int]]) -> dict[str, int]:
    return {name: int(statistics.median(c[name] for c in counts)) for name in ascend_host.COUNTERS}


def measure_plans(batch: int, gamma: int) -> Iterator[dict[str, Any]]:
    """Medians over a few inputs, per call."""
    for form in range(len(list(calls(batch, gamma, 0)))):
        counts = []
        for seed in range(REPEATS):
            stem, label, args = list(calls(batch, gamma, seed))[form]
            compare(stem, args, "ascend_host")
            ascend_host.counters()
            get_backend("ascend_host").operator(stem)(*args)
            counts.append(ascend_host.counters())
        yield {"stem": stem, "form": label, "batch": batch, "gamma": gamma, **_medians(counts)}


def measure_case(case: Case) -> dict[str, Any]:
    """The same of a case of the CPU benchmark."""
    counts = []
    with dspark_ops.use_backend("ascend_host"):
        equals_reference(case)
        for i in range(REPEATS):
            ascend_host.counters()
            case.ours(i)
            counts.append(ascend_host.counters())
    stem, form = re.split("[ +]|$", case.op, maxsplit=1)
    return {"stem": stem, "form": form, "batch": case.batch, "gamma": case.gamma, **_medians(counts)}


def measure(batch: int, gamma: int) -> Iterator[dict[str, Any]]:
    """Every operator at one size."""
    yield from measure_plans(batch, gamma)
    for case in (*cases_layout.cases(batch, gamma, None), *cases_accept.cases(batch, gamma, None)):
        if get_backend("ascend_host").serves(re.split("[ +]|$", case.op, maxsplit=1)[0]):
            yield measure_case(case)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="also write the counts as JSON")
    arguments = parser.parse_args()
    table = []
    print(f"{'operator':38} {'B':>4} {'γ':>2} " + " ".join(f"{h:>7}" for h in SHOWN.values()))
    for batch in BATCHES:
        for gamma in GAMMAS:
            for row in measure(batch, gamma):
                table.append(row)
                name = f"{row['stem']} {row['form']}".strip()
                print(f"{name:38} {batch:4} {gamma:2} " + " ".join(f"{row[k]:7}" for k in SHOWN))
    if arguments.output:
        versions = {"torch": torch.__version__, "python": platform.python_version()}
        text = json.dumps({"versions": versions, "emulated": True, "counts": table}, indent=1)
        arguments.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
