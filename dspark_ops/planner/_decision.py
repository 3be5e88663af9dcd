"""What the host decides for one step."""

from __future__ import annotations

from typing import Literal

import msgspec
import torch
from torch import Tensor

from ._graphs import Graph

Reason = Literal["planned", "forced", "bypass", "flat", "verify_all", "idle", "fallback"]


class Decision(msgspec.Struct, frozen=True, eq=False):
    """One step, as decided before its launch.

    Attributes:
        reason: "planned"; "forced" (`Planner.force`); "bypass" (trimming cannot pay at this load); "flat" (the table
            is: everything is verified); "verify_all" (asked for by cost=None); "idle" (no requests here, others have);
            "fallback" (some rank has no plan, or nobody has requests: every rank takes its uniform layout).
        budget: rows above the mandatory ones, tier fill included; what `allocate_verify_lens` takes.
        trims: whether anything may be left out. If not, every request verifies all its rows.
        rows: rows of the step that ranks take together, -1 for a fall-back. Without a graph, pad to these.
        graph: key (rows, slots) of the graph to replay; None runs eager.
        slots, generation: int64 [B] on the host: the requests of this rank.
        full_rows: rows if nothing is trimmed, by `max_rows` neither.
        local_budget: this rank's own best budget, before agreement and fill.
        predicted_tau: expected committed tokens of this rank from lagged confidences; 0.0 where none were looked at.
        predicted_ns: the cost model's time of the graph's step, or if eager of this rank's own plan; 0 where no model
            was asked.
        fingerprint: hash of inputs, table and plan; 0 unless ranks are compared.
    """

    reason: Reason
    budget: int
    trims: bool
    rows: int
    graph: Graph | None
    slots: Tensor
    generation: Tensor
    full_rows: int
    local_budget: int
    predicted_tau: float = 0.0
    predicted_ns: int = 0
    fingerprint: int = 0

    @property
    def launches(self) -> bool:
        """Whether `allocate` has work to do: something is trimmed, or must be observed for later steps to trim by."""
        return self.trims or self.reason == "planned"

    def idle_lens(self, device: str | torch.device = "cpu") -> Tensor:
        """int32 lengths of an idle rank in the agreed graph: one row per slot. Empty without a graph."""
        return torch.ones(self.graph.slots if self.graph else 0, dtype=torch.int32, device=device)
