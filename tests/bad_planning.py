# ruff: noqa: E501 (a table: one line a row)
"""Bad input of the planning functions."""

from __future__ import annotations

from typing import Any

import torch
from bad_row import Row

import dspark_ops

C = torch.full((4, 7), 0.5)
S = torch.full((4, 7), 0.5)
STEP = torch.arange(33, dtype=torch.int32)
INT = torch.zeros(4, dtype=torch.int32)
LONG = torch.zeros(4, dtype=torch.int64)
TIERS = torch.tensor([4, 8], dtype=torch.int32)
NAN = float("nan")


def alloc(**kw: Any) -> object:
    return dspark_ops.allocate_verify_lens(**{"confidence": C, "step_ns": STEP, "search": "global", **kw})


def history(**kw: Any) -> object:
    return alloc(**{"search": None, "history": C, **kw})


def given(**kw: Any) -> object:
    return alloc(**{"search": None, "step_ns": None, "budget": 3, **kw})


def plan(**kw: Any) -> object:
    return dspark_ops.plan_budget(**{"survival": S, "step_ns": STEP, "search": "global", **kw})


def schedule(**kw: Any) -> object:
    return dspark_ops.schedule_verify_lens(**{"survival": S, "budget": 3, **kw})


def survive(**kw: Any) -> object:
    return dspark_ops.prefix_survival(**{"confidence": C, **kw})


def workspace(i: int, t: torch.Tensor) -> dspark_ops.Plan:
    fields = list(dspark_ops.allocate_verify_lens(C, budget=0))
    fields[i] = t
    return dspark_ops.Plan(*fields)


TABLE: list[Row] = [
    # what is decided on
    (alloc, {"confidence": None}, ValueError, "confidence: give exactly one of confidence and logits"),
    (alloc, {"logits": C}, ValueError, "confidence: give exactly one of confidence and logits"),
    (alloc, {"confidence": C.double()}, TypeError, "confidence: expected dtype torch.float32 or torch.bfloat16 or torc"),
    (alloc, {"confidence": C[0]}, ValueError, r"confidence: expected shape [rows, γ], got [7]"),
    (alloc, {"confidence": C.tolist()}, TypeError, "confidence: expected a torch.Tensor, got list"),
    (alloc, {"confidence": torch.empty(4, 0)}, ValueError, "gamma: expected at least one draft token"),
    (alloc, {"confidence": torch.empty(1 << 17, 2)}, ValueError, "B·N: expected at most 262144 rows, got 131072·3"),
    (alloc, {"scale": torch.ones(7)}, ValueError, "scale: needs logits"),
    (survive, {"confidence": None, "logits": C, "scale": torch.ones(6)}, ValueError, "scale: expected shape [7], got [6]"),
    (survive, {"confidence": None, "logits": C, "offset": LONG}, TypeError, "offset: expected dtype torch.float32"),
    (survive, {"confidence": None, "logits": C, "offset": torch.ones(3)}, ValueError, "offset: expected shape [4], got [3]"),
    (survive, {"slots": torch.zeros(4)}, TypeError, "slots: expected dtype torch.int32 or torch.int64, got torch.float32"),
    (survive, {"generation": LONG}, ValueError, "expected: generation and expected must be given together"),
    (survive, {"expected": LONG}, ValueError, "generation: generation and expected must be given together"),
    (survive, {"fresh": INT}, TypeError, "fresh: expected dtype torch.bool, got torch.int32"),
    (survive, {"out": torch.empty(7, 4).T}, ValueError, "out: an output must be contiguous, got strides (1, 4)"),
    (survive, {"out": torch.empty(4, 6)}, ValueError, "out: expected shape [4, 7], got [4, 6]"),
    (plan, {"survival": S.bfloat16()}, TypeError, "survival: expected dtype torch.float32, got torch.bfloat16"),
    # which search
    (alloc, {"search": None}, ValueError, "search: must be named when neither history nor budget is given"),
    (alloc, {"search": "best"}, ValueError, "search: expected 'global' or 'first_drop', got 'best'"),
    (alloc, {"budget": 3}, ValueError, "search: not together with budget"),
    (given, {"history": C}, ValueError, "history: not together with budget"),
    (given, {"min_gain_ppm": 5}, ValueError, "min_gain_ppm: not together with budget"),
    (given, {"budget": -1}, ValueError, "budget: expected an int >= 0, got -1"),
    (given, {"budget": 1.5}, TypeError, "budget: expected an int, got float"),
    (given, {"budget": True}, TypeError, "budget: expected an int, got bool"),
    (given, {"budget": LONG}, ValueError, "budget: expected one int64 value, got shape [4]"),
    (schedule, {"budget": torch.tensor(3, dtype=torch.int32)}, TypeError, "budget: expected dtype torch.int64"),
    (alloc, {"min_gain_ppm": 1_000_001}, ValueError, "min_gain_ppm: expected an int in [0, 1000000], got 1000001"),
    (alloc, {"min_gain_ppm": 1, "search": "first_drop"}, ValueError, "min_gain_ppm: not with search='first_drop'"),
    # history
    (alloc, {"fresh": torch.ones(4, dtype=torch.bool)}, ValueError, "fresh: needs history"),
    (alloc, {"history_slots": INT}, ValueError, "history_slots: needs history"),
    (history, {"history": C[:3]}, ValueError, "history: expected shape [4, 7], got [3, 7]"),
    (history, {"history": C[:, :5]}, ValueError, "history: expected shape [4, 7], got [4, 5]"),
    (history, {"fresh": torch.ones(4) > 0, "generation": LONG, "expected": LONG}, ValueError, "fresh: give either"),
    (history, {"generation": LONG[:2], "expected": LONG}, ValueError, "generation: expected shape [4], got [2]"),
    # limits
    (alloc, {"min_verify_len": -1}, ValueError, "min_verify_len: expected an int in [0, 8], got -1"),
    (alloc, {"min_verify_len": 5, "max_verify_len": 4}, ValueError, "min_verify_len: expected an int in [0, 4], got 5"),
    (alloc, {"max_verify_len": 0}, ValueError, "max_verify_len: expected an int >= 1, got 0"),
    (alloc, {"max_verify_len": 9}, ValueError, "max_verify_len: expected an int in [1, 8], got 9"),
    (alloc, {"survival_eps": 0.0}, ValueError, "survival_eps: expected a number in [9.53674e-07, 1], got 0.0"),
    (alloc, {"survival_eps": NAN}, ValueError, "survival_eps: expected a number in [9.53674e-07, 1], got nan"),
    (alloc, {"max_rows": (1 << 62) + 1}, ValueError, "max_rows: expected an int in [0, 4611686018427387904], got"),
    (given, {"budget": 1 << 63}, ValueError, "budget: expected an int in [0, 4611686018427387904], got"),
    (alloc, {"slots": [0, 1]}, TypeError, "slots: expected a torch.Tensor, got list"),
    (alloc, {"confidence": torch.tensor(0.5)}, ValueError, "confidence: expected shape [rows, γ], got []"),
    (survive, {"confidence": None, "logits": C, "offset": [0.0]}, TypeError, "offset: expected a torch.Tensor, got list"),
    (alloc, {"search": ["global"]}, ValueError, "search: expected 'global' or 'first_drop', got ['global']"),
    (alloc, {"out": (1, 2)}, TypeError, "out: expected a Plan, got tuple"),
    (alloc, {"num_reqs": 4}, ValueError, "num_reqs: only a StepCost asks for it"),
    (given, {"base_ns": 4}, ValueError, "base_ns: needs step_ns"),
    (plan, {"survival": torch.tensor(0.5)}, ValueError, "survival: expected shape [B, γ], got []"),
    (alloc, {"max_rows": -2}, ValueError, "max_rows: expected an int >= 0, got -2"),
    (alloc, {"max_rows": -1}, ValueError, "max_rows: expected an int >= 0, got -1"),
    (alloc, {"caps": LONG}, TypeError, "caps: expected dtype torch.int32, got torch.int64"),
    (alloc, {"caps": INT[:3]}, ValueError, "caps: expected shape [4], got [3]"),
    # cost
    (alloc, {"step_ns": None}, ValueError, "step_ns: needed to search a budget"),
    (alloc, {"step_ns": STEP[:32]}, ValueError, "step_ns: expected more than 32 entries (rows 0..32), got 32"),
    (alloc, {"step_ns": STEP[:10], "max_rows": 10}, ValueError, "step_ns: expected more than 10 entries"),
    (alloc, {"step_ns": STEP.float()}, TypeError, "step_ns: expected dtype torch.int32, got torch.float32"),
    (alloc, {"step_ns": [1, 2]}, TypeError, "step_ns: expected a torch.Tensor or a StepCost, got list"),
    (alloc, {"base_ns": 0.5}, TypeError, "base_ns: expected an int, got float"),
    (alloc, {"base_ns": LONG}, ValueError, "base_ns: expected one int64 value, got shape [4]"),
    # tiers
    (alloc, {"fill_tier": True}, ValueError, "fill_tier: needs tiers"),
    (alloc, {"tiers": TIERS.long()}, TypeError, "tiers: expected dtype torch.int32, got torch.int64"),
    (alloc, {"tiers": TIERS[:0]}, ValueError, "tiers: expected at least one tier, got none"),
    (plan, {"out_tier_tau": torch.empty(2, 2, dtype=torch.int64)}, ValueError, "out_tier_tau: needs tiers"),
    # workspaces
    (given, {"out": workspace(0, LONG)}, TypeError, "out.verify_lens: expected dtype torch.int32, got torch.int64"),
    (given, {"out": workspace(1, INT)}, ValueError, "out.cu_seqlens: expected shape [5], got [4]"),
    (given, {"out": workspace(3, LONG)}, ValueError, "out.stats: expected shape [5], got [4]"),
    (plan, {"out": torch.empty(10, dtype=torch.int64)[::2]}, ValueError, "out: an output must be contiguous"),
]  # fmt: skip
