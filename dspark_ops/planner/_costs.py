"""A cost model as a planner asks it: rows cached by batch, and whether trimming can pay at all."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .. import _checks
from ..cost import MAX_NS, StepCost
from ._identity import fingerprint

_CPU = torch.device("cpu")  # made once: the row is asked for in every step


class Span(NamedTuple):
    """The cost of the plans that one batch may take, in ns."""

    row: Tensor  # int32, token side by rows
    base: int
    least_ns: int  # of the cheapest plan
    full_ns: int  # of the largest one

    def needed_ppm(self, min_gain_ppm: int, overhead_ns: int) -> int:
        """The gain that a trimmed step must promise: min_gain_ppm, and what its planning costs by itself."""
        return min_gain_ppm - (-overhead_ns * 1_000_000 // self.least_ns)

    def can_pay(self, ppm: int) -> bool:
        """Whether any plan could beat the full one by more than ppm.

        tau(b) <= tau(full), so trimming gains at most the factor T(full) / min T. Where that is too little,
        `plan_budget` with this min_gain_ppm keeps everything, whatever the confidences say.
        """
        return self.full_ns * 1_000_000 > self.least_ns * (1_000_000 + ppm)


def step_ns(base: int, token_side: int) -> int:
    """T = base + token side, clamped as kernels clamp it."""
    return min(max(base + token_side, 1), MAX_NS)


class PlanningCost:
    """What the planner keeps of a `StepCost`. A model that changes returns a new row, which replaces what is kept."""

    def __init__(self, cost: StepCost, width: int) -> None:
        self.model = cost
        self._width = width
        self._spans: dict[int, tuple[int, int, Span, int, int]] = {}
        self._marked: tuple[Tensor, int] | None = None
        self._at_tiers: dict[int, tuple[Tensor, int, list[int]]] = {}

    def row(self, requests: int) -> Tensor:
        """int32 ns by rows, long enough for any plan of so many requests; few different lengths, so few rows."""
        rows = min(1 << (requests * self._width).bit_length(), _checks.MAX_VERIFY_ROWS)
        return self.model.row(rows, _CPU, requests)

    def mark(self, slots: int) -> int:
        """24 bits of the model's fingerprint, taken anew when its row for so many requests is another."""
        row = self.row(slots)
        if self._marked is None or self._marked[0] is not row:
            self._marked = (row, fingerprint([self.model.fingerprint]) & ((1 << 24) - 1))
        return self._marked[1]

    def span(self, requests: int, least: int, full: int, context_tokens: int | None) -> Span:
        """What a plan of `least` to `full` rows may cost."""
        row, base = self.row(requests), self.model.base(requests, context_tokens)
        kept = self._spans.get(requests)
        if kept is not None and kept[2].row is row and kept[0] == least and kept[1] == full:
            _, _, span, low, high = kept
            if span.base == base:
                return span
        else:
            low, high = int(row[least : full + 1].min()), int(row[full])
        span = Span(row, base, step_ns(base, low), step_ns(base, high))
        self._spans[requests] = (least, full, span, low, high)
        return span

    def at_tiers(self, slots: int, tiers: tuple[int, ...], context_tokens: int | None) -> list[int]:
        """T in ns of each tier, for steps of so many slots."""
        row, base = self.row(slots), self.model.base(slots, context_tokens)
        kept = self._at_tiers.get(slots)
        if kept is None or kept[0] is not row or kept[1] != base:
            kept = self._at_tiers[slots] = (row, base, [step_ns(base, int(row[tier])) for tier in tiers])
        return kept[2]
