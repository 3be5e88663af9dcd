"""Fit cost tables to measured step times, and ask each how many draft rows are worth verifying."""

from pathlib import Path

import torch

import dspark_ops
from dspark_ops.cost.cells import CostCells
from dspark_ops.cost.fit import fit_additive, fit_floor, fit_tiers

cells = CostCells.load(Path(__file__).parent / "traces/cost_cells.json")  # [{"bs": 8, "M": 24, "T": seconds}, ...]
survival = torch.linspace(0.9, 0.4, 16)[:, None] ** torch.arange(1, 8)  # 16 requests, from sure to unsure
for table in (fit_floor(cells), fit_additive(cells), fit_tiers(cells, ())):
    budget, rows, _, tau, ns = dspark_ops.plan_budget(survival, table, search="global").tolist()
    print(f"{type(table).__name__:13} {rows} rows, {tau / 2**43:.1f} tokens expected in {ns / 1e6:.0f} ms")
    print(f"{'':13} fingerprint {table.fingerprint[:16]}: ranks compare it before they plan")
