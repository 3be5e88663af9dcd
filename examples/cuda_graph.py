"""Planning inside a captured CUDA graph: fixed addresses, new inputs on every replay, nothing read on the host."""

import torch

import dspark_ops
from dspark_ops.tiers import tier_row

device = "cuda" if torch.cuda.is_available() else "cpu"
batch, gamma, tier, slots = 64, 7, 256, 68
confidence = torch.rand(batch, gamma, device=device)
budget = torch.zeros(1, dtype=torch.int64, device=device)  # rows above one root each; from `Planner`, every step
tiers = tier_row([tier], device)


def plan_and_layout() -> tuple[dspark_ops.Plan, dspark_ops.RaggedLayout]:
    plan = dspark_ops.allocate_verify_lens(confidence, budget=budget, tiers=tiers)
    padded = dspark_ops.pad_to_bucket(plan.verify_lens, tier, slots)
    return plan, dspark_ops.ragged_layout(padded.padded, tier)


if device == "cuda":
    plan_and_layout()  # once outside: loads and compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan, layout = plan_and_layout()
for rows in (64, 128, 256):
    confidence.uniform_()
    budget.fill_(rows - batch)
    if device == "cuda":
        graph.replay()
    else:
        plan, layout = plan_and_layout()
    real, owned = int(plan.stats[1]), int(layout.cu_seqlens[-1])
    print(f"budget {rows - batch}: {real} rows hold tokens, of {owned} in the graph")
if device == "cpu":
    print("no GPU here: ran without a graph")
