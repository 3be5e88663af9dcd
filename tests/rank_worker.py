"""What each process of tests/test_planner_ranks.py does; its findings go to `<rank>.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import dspark_ops
from dspark_ops import Planner, RanksDiffer

WORLD, STEPS, GAMMA, SLOTS, LAG = 4, 200, 5, 32, 2
GRAPHS = [(rows, slots) for slots in (4, 16, 32) for rows in range(slots, slots * 6 + 1, slots)]
IDLE, LEAVES_OUT = 3, 2  # the rank without requests; the one that has no plan in every tenth step
COST = dspark_ops.AdditiveTable(
    bias_seconds=0.004, bs_probes=[1, 32], alpha_seconds=[0.0, 0.003], m_probes=[1, 24, 192],
    theta_seconds=[0.0, 0.0005, 0.02],
)  # fmt: skip
OTHER = dspark_ops.FloorTable(sample_batch_tokens=[1, 64], sample_steps_per_sec=[200.0, 100.0], max_batch_tokens=256)


def data_parallel(rank: int, rule: str) -> list[dict[str, Any]]:
    """200 steps of different loads; what this rank decided in each."""
    planner = Planner(
        COST, gamma=GAMMA, slots=SLOTS, graphs=GRAPHS, lag=LAG, rule=rule, dp_group=dist.group.WORLD, bypass=False
    )
    g = torch.Generator().manual_seed(rank)
    seen = []
    for step in range(STEPS):
        idle = rank == IDLE or (rank == 1 and step % 17 == 0) or step == 100
        requests = 0 if idle else int(torch.randint(1, 9 + 8 * rank, (1,), generator=g))
        slots = torch.randperm(SLOTS, generator=g)[:requests]
        confidence = torch.rand(requests, GAMMA, generator=g) ** (0.2 + rank)
        no_plan = rank == LEAVES_OUT and step % 10 == 7
        decision = planner.fall_back(slots) if no_plan else planner.decide(slots)
        plan = planner.allocate(decision, confidence) if requests else None
        seen.append({
            "requests": requests, "reason": decision.reason, "rows": decision.rows, "graph": decision.graph,
            "own_rows": requests + decision.local_budget, "trims": decision.trims,
            "verified": requests * (GAMMA + 1) if plan is None else int(plan.stats[1]),
            "idle_lens": decision.idle_lens().tolist() if idle else None,
        })  # fmt: skip
    return seen


def tensor_parallel(rank: int, group: Any, identity: str, drift: float, steps: int = 20) -> dict[str, Any]:
    """The plans of a rank whose confidences drift from the other's, and at which step the ranks noticed."""
    planner = Planner(COST, gamma=GAMMA, slots=SLOTS, graphs=GRAPHS, lag=LAG, tp_group=group, identity=identity)
    g = torch.Generator().manual_seed(7)
    found: dict[str, Any] = {"lens": [], "graphs": [], "error": None}
    for step in range(steps):
        slots = torch.randperm(SLOTS, generator=g)[:16]
        confidence = torch.rand(16, GAMMA, generator=g) ** 0.3
        if rank == 1:
            confidence = (confidence + drift).clamp(max=1)
        try:
            decision = planner.decide(slots)
        except RanksDiffer as error:
            found["error"] = [step, str(error)]
            return found
        plan = planner.allocate(decision, confidence)
        assert plan is not None
        found["lens"].append(plan.verify_lens.tolist())
        found["graphs"].append(decision.graph)
    return found


# A fourth row takes 16.46 % more: worth it for 1 + .810 + .718 + .417 tokens, not for 1 + .811 + .720 + .416.
EDGE = dspark_ops.FloorTable(sample_batch_tokens=[1, 4], sample_steps_per_sec=[10.0, 10.0 / 1.1646], max_batch_tokens=4)


def fault_2(rank: int, group: Any, identity: str) -> dict[str, Any]:
    """The reported confidences: survival .811 .720 .416 on one rank, .810 .718 .417 on the other; no group: alone."""
    survival = torch.tensor([[0.811, 0.720, 0.416], [0.810, 0.718, 0.417]][rank])
    confidence = torch.stack([survival[0], survival[1] / survival[0], survival[2] / survival[1]])[None].contiguous()
    planner = Planner(EDGE, gamma=3, slots=4, tp_group=group, identity=identity)
    slots = torch.tensor([0])
    try:
        lens = []
        for _ in range(3):
            plan = planner.allocate(planner.decide(slots), confidence)
            assert plan is not None
            lens.append(plan.verify_lens.tolist())
        return {"lens": lens, "error": None}
    except RanksDiffer as error:
        return {"error": str(error)}


def different_tables(rank: int, group: Any, kind: str) -> str | None:
    """The refusal of ranks that were given different tables, before any decision."""
    try:
        Planner(OTHER if rank == 1 else COST, gamma=GAMMA, slots=SLOTS, **{f"{kind}_group": group})
    except RanksDiffer as error:
        return str(error)
    return None


def main(rank: int, folder: str) -> None:
    """Every scenario in turn; all ranks call the same collectives in the same order."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD)
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    pair, place = pairs[rank // 2], rank % 2
    found = {rule: data_parallel(rank, rule) for rule in ("maximum", "joint")}
    found |= {
        "same": tensor_parallel(place, pair, "check", 0.0),
        "drift": tensor_parallel(place, pair, "check", 1e-3),
        "broadcast": tensor_parallel(place, pair, "broadcast", 1e-3),
        "fault_2_alone": fault_2(place, None, "check"),
        "fault_2_check": fault_2(place, pair, "check"),
        "fault_2_broadcast": fault_2(place, pair, "broadcast"),
        "tables_tp": different_tables(place, pair, "tp"),
        "tables_dp": different_tables(rank, dist.group.WORLD, "dp"),
    }
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()
