"""What does the `Planner` add on the host to the operators that it calls?

    python bench/planner_host.py [--seconds 1] [--json FILE] [--gate]

One step of B requests is `decide`, `observe` (what `allocate` does beside its launch) and `record`. The rival of the
same run is what they stand on: `prefix_survival` with generations, then `plan_budget`. One thread; medians, the
contestants taking turns. The goal: at most 30 µs beyond the operators at B = 64.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from run import machine
from timing import race

import dspark_ops
from dspark_ops._files import write_atomic

GAMMA, SLOTS, ROTATE = 7, 256, 8
GOAL_US = 30.0
CASES = (("maximum", "maximum", True), ("joint", "joint", True), ("not planned", "maximum", False))
ROOT = Path(__file__).parent.parent


def contestants(batch: int, rule: str, loaded: bool) -> tuple[Any, Any]:
    """A planner's step, and the operators alone, on the same confidences."""
    cost = dspark_ops.load_cost_table(ROOT / "examples/sps_table.json")
    graphs = [(rows, size) for size in (8, 64, 256) for rows in range(size, size * 8 + 1, size)]
    planner = dspark_ops.Planner(cost, gamma=GAMMA, slots=SLOTS, graphs=graphs, lag=2, rule=rule, bypass=loaded)
    if not loaded:  # what a bypass saves: the same load, planned and not
        planner.force(1.0)
    g = torch.Generator().manual_seed(batch)
    slots = [torch.randperm(SLOTS, generator=g)[:batch] for _ in range(ROTATE)]
    confidence = [torch.rand(batch, GAMMA, generator=g) for _ in range(ROTATE)]

    def step(i: int) -> None:
        mine = slots[i % ROTATE]
        decision = planner.decide(mine)
        planner.observe(mine, confidence[i % ROTATE], decision.generation)
        planner.record(decision, rows=decision.rows, tokens=batch, step_ns=decision.predicted_ns)

    history, written = torch.rand(SLOTS, GAMMA, generator=g), torch.ones(SLOTS, dtype=torch.int64)
    expected, row = torch.ones(batch, dtype=torch.int64), cost.row(SLOTS * (GAMMA + 1))
    survival, stats = torch.empty(batch, GAMMA), torch.empty(5, dtype=torch.int64)
    tiers = torch.tensor(sorted({rows for rows, _ in graphs}), dtype=torch.int32)
    tier_tau = torch.empty(2, len(tiers), dtype=torch.int64)

    def operators(i: int) -> None:
        dspark_ops.prefix_survival(
            history, slots=slots[i % ROTATE], generation=written, expected=expected, out=survival
        )
        dspark_ops.plan_budget(survival, row, search="global", tiers=tiers, out=stats, out_tier_tau=tier_tau)

    return step, operators


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each contestant")
    parser.add_argument("--json", type=Path, help="also write the records to this file")
    parser.add_argument("--gate", action="store_true", help="exit with 1 if the goal is missed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    records = []
    for batch in (8, 64, 256):
        for name, rule, loaded in CASES:
            step, operators = race(list(contestants(batch, rule, loaded)), options.seconds)
            added = step.p50 - (operators.p50 if loaded else 0.0)
            records.append({
                "B": batch, "gamma": GAMMA, "case": name,
                "step_p50_us": round(step.p50, 2), "step_p80_us": round(step.p80, 2),
                "operators_p50_us": round(operators.p50, 2), "added_us": round(added, 2),
            })  # fmt: skip
            print(", ".join(f"{k} {v}" for k, v in records[-1].items()))
    if options.json:
        write_atomic(options.json, json.dumps({"machine": machine(1), "records": records}, indent=1) + "\n")
    missed = [r for r in records if r["B"] == 64 and r["added_us"] > GOAL_US]
    print(f"B = 64: at most {max(r['added_us'] for r in records if r['B'] == 64):.1f} µs added, goal {GOAL_US:g} µs")
    return int(options.gate and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
