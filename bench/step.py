"""What does a decode step cost the host around the target's forward pass, by SGLang's path and by ours?

    python bench/step.py [--sizes 8x7,64x7,256x7] [--seconds 0.5] [--json FILE]

Plan (budget from the step before, lengths from this one), graph size, padding to it, row map, verify ids, KV geometry,
logits back to N rows a request, and what the step commits. Both get the same inputs and must give the same lengths,
ids, geometry and tokens. Both choose the budget on the host, from a copy of earlier confidences that lies there.
Operators are counted in a trace of torch.profiler on a CPU. Of those outside that choice, a leaf that writes a tensor
would be a launch on a device, and a host read would wait for it. SGLang's path is that of its CPU functions; how many
launches its Triton functions need is in docs/triton.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import rival
import torch
from case import equal
from cases_planning import tables
from run import machine
from timing import race
from torch import Tensor
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

import dspark_ops
from dspark_ops._files import write_atomic

COLUMNS = 64  # of the logits: what moves there is the same for both, and not the host's time
ON_HOST = "on the host"  # names the part of a step that works on host tensors wherever the model runs
# Operators that launch nothing: views, allocations, and the wrappers of a host read.
FREE = {
    "empty", "empty_like", "empty_strided", "new_empty", "as_strided", "view", "_unsafe_view", "reshape", "expand",
    "expand_as", "slice", "select", "narrow", "unsqueeze", "squeeze", "t", "transpose", "detach", "alias", "resize_",
    "resolve_conj", "resolve_neg", "lift_fresh", "unbind", "split", "item", "_local_scalar_dense", "is_nonzero", "to",
    "result_type", "numel", "flatten", "view_as", "_reshape_alias", "permute",
}  # fmt: skip


@dataclass(frozen=True)
class Inputs:
    """What a step starts from."""

    confidence: Tensor
    history: Tensor
    prefix: Tensor
    root: Tensor
    drafts: Tensor
    logits: Tensor
    hidden: Tensor
    raw: Tensor
    target: Tensor

    @classmethod
    def random(cls, batch: int, gamma: int, seed: int) -> Inputs:
        g = torch.Generator().manual_seed(seed)

        def ints(high: int, *shape: int) -> Tensor:
            return torch.randint(0, high, shape, generator=g)

        rows = batch * (gamma + 1)
        return cls(
            torch.rand(batch, gamma, generator=g), torch.rand(batch, gamma, generator=g), ints(4000, batch),
            ints(9999, batch), ints(9999, batch, gamma), torch.rand(rows, COLUMNS, generator=g),
            torch.rand(rows, COLUMNS, generator=g), ints(gamma + 1, batch).int(), ints(9999, batch, gamma + 1),
        )  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What both paths must agree on."""

    lens: Tensor
    ids: Tensor
    positions: Tensor
    cache_seqlens: Tensor
    logits: Tensor
    commit: Tensor
    new_lens: Tensor
    tokens: Tensor


def ours(x: Inputs, cost: dspark_ops.StepCost, tiers: Tensor, slots: int) -> Outcome:
    """A step by dspark_ops."""
    width = x.drafts.shape[1] + 1
    with record_function(ON_HOST):
        stats = dspark_ops.plan_budget(dspark_ops.prefix_survival(x.history), cost, search="global", tiers=tiers)
        budget, _, rows, _, _ = stats.tolist()
    plan = dspark_ops.allocate_verify_lens(x.confidence, budget=budget)
    padded = dspark_ops.pad_to_bucket(plan.verify_lens, rows, slots, cap=width)
    layout = dspark_ops.ragged_layout(
        plan.verify_lens, rows, prefix=x.prefix, root_tokens=x.root, draft_tokens=x.drafts
    )
    strided = dspark_ops.scatter_to_strided(x.logits[:rows], plan.cu_seqlens, width)
    dspark_ops.scatter_to_strided(x.hidden[:rows], plan.cu_seqlens, width)
    done = dspark_ops.finalize_accept(x.raw, x.drafts, plan.verify_lens, x.prefix, target_tokens=x.target)
    assert layout.verify_ids is not None and layout.position is not None and layout.cache_seqlens is not None
    assert done.new_seq_len is not None and padded.padded.shape[0] == slots
    return Outcome(
        plan.verify_lens, layout.verify_ids, layout.position, layout.cache_seqlens, strided, done.commit_len,
        done.new_seq_len, done.out_tokens,
    )  # fmt: skip


def sglang(s: SimpleNamespace, x: Inputs, table: Any, tiers: list[int], slots: int) -> Outcome:
    """The same step by SGLang's functions, in the order in which its worker calls them."""
    batch, gamma = x.drafts.shape
    width, device = gamma + 1, torch.device("cpu")
    window = sys.modules[f"{rival.OPS}.dspark.dspark_verify_window"]
    cfg = s.DSparkScheduleConfig(gamma=gamma)
    planner = sys.modules[f"{rival.SRT}.dspark_components.dspark_planner"]
    with record_function(ON_HOST):
        survival = torch.cumprod(x.history, dim=1)
        decision = planner.compute_verify_token_budget(history_survival_probs=survival, sps_table=table, cfg=cfg)
        rows = s.round_up_grid(min(batch + decision.budget, batch * width), tiers)
    lens = s.ScheduleVerifyLensTopk.execute(confidence=x.confidence, budget=decision.budget, cfg=cfg)
    layout = s.RaggedVerifyLayout.from_verify_lens_device(verify_lens=lens, graph_num_tokens=rows)
    layout.padded_to_bucket(padded_bs=slots, cap=width)
    request, within, valid = window.compact_row_index(verify_lens=lens, padded_total=rows, device=device)
    positions = torch.where(valid, x.prefix[request.clamp(max=batch - 1)] + within, torch.zeros_like(within))
    ids = window.compact_verify_ids(
        draft_block_ids=x.root[:, None], draft_tokens=x.drafts, layout=layout, device=device
    )
    geometry = s.build_ragged_target_verify_geometry(seq_lens=x.prefix, layout=layout)
    strided, _ = (
        s.ScatterCompactToStrided.execute(compact=t, layout=layout, fill_value=0.0, verify_num_draft_tokens=width)
        for t in (x.logits, x.hidden)
    )
    correct, trimmed = s.CapCorrectLen.execute(correct_len=x.raw, verify_lens=lens)
    bonus = x.target[torch.arange(batch), correct.long()]
    done = s.FinalizeAcceptLens.execute(correct_len=correct, cap_trim_lens=trimmed, prefix_lens=x.prefix)
    tokens = s.BuildOutTokens.execute(
        draft_tokens=x.drafts, correct_len=correct, bonus=bonus, verify_num_draft_tokens=width, gamma=gamma
    )
    return Outcome(
        lens, ids, positions, geometry.cache_seqlens_int32, strided, done.commit_lens, done.new_seq_lens, tokens
    )


def count(step: Callable[[int], object]) -> dict[str, int]:
    """Leaf operators of one step that launch, host reads that wait, and leaf operators of the choice on the host."""
    step(0)
    with profile(activities=[ProfilerActivity.CPU]) as trace:
        step(0)
    found = {"launches": 0, "host_reads": 0, "on_host": 0}
    for event in trace.events():
        namespace, _, name = event.name.partition("::")
        if namespace not in ("aten", "dspark"):
            continue
        on_host = _inside(event, ON_HOST)
        found["host_reads"] += name == "_local_scalar_dense" and not on_host
        inner = any(child.name.partition("::")[0] in ("aten", "dspark") and child.name.partition("::")[2] not in FREE
                    for child in event.cpu_children)  # fmt: skip
        found["on_host" if on_host else "launches"] += not inner and name not in FREE
    return found


def _inside(event: FunctionEvent, name: str) -> bool:
    while event.cpu_parent is not None:
        event = event.cpu_parent
        if event.name == name:
            return True
    return False


def measure(s: SimpleNamespace, batch: int, gamma: int, seconds: float) -> dict[str, Any]:
    """Both paths at one size: agreement first, then counts and times."""
    most, slots = batch * (gamma + 1), batch + 2
    tiers = sorted({max(batch, most * k // 8) for k in range(1, 9)})
    cost = tables(batch, gamma + 1)["additive"]
    table = s.SpsAdditiveCostTable.from_json(cost.to_json())
    inputs = [Inputs.random(batch, gamma, seed) for seed in range(8)]
    row = torch.tensor(tiers, dtype=torch.int32)
    mine: list[Callable[[int], Outcome]] = [lambda i: ours(inputs[i % 8], cost, row, slots)]
    mine.append(lambda i: sglang(s, inputs[i % 8], table, tiers, slots))
    for i in range(8):
        a, b = (vars(path(i)) for path in mine)
        for name, value in a.items():
            equal(value, b[name], name)
    fast, slow = race(mine, seconds)
    record: dict[str, Any] = {"B": batch, "gamma": gamma, "ratio": round(slow.p50 / fast.p50, 2)}
    for name, path, time in (("ours", mine[0], fast), ("sglang", mine[1], slow)):
        record[name] = {"p20_us": round(time.p20, 1), "p50_us": round(time.p50, 1), "p80_us": round(time.p80, 1)}
        record[name] |= count(partial(path))
    return record


def markdown(data: dict[str, Any]) -> str:
    """The records as the table of docs and README."""
    lines = ["| a step at γ = 7 | host time, µs: SGLang, ours | operators that choose the budget on the host | "
             "launches | host reads that wait |", "|---|---|---|---|---|"]  # fmt: skip
    for r in data["records"]:
        a, b = r["ours"], r["sglang"]
        lines.append(
            f"| B = {r['B']} | {b['p50_us']:,.0f}, {a['p50_us']:,.0f} (**{r['ratio']:.1f}×**) | "
            f"{b['on_host']}, {a['on_host']} | {b['launches']}, {a['launches']} | "
            f"{b['host_reads']}, {a['host_reads']} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="8x7,64x7,256x7", help="comma-separated B x gamma")
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each path at each size")
    parser.add_argument("--json", type=Path, help="also write the records to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    try:
        s = rival.load()
    except rival.Unavailable as reason:
        sys.exit(f"error: nothing to compare with: {reason}")
    sizes = [tuple(map(int, size.split("x"))) for size in options.sizes.split(",")]
    data = {"machine": machine(1), "records": [measure(s, *size, options.seconds) for size in sizes]}
    print(markdown(data))
    if options.json:
        write_atomic(options.json, json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
