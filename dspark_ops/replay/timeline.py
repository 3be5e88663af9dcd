"""Who decodes when: which recorded step each slot takes at each step of a replay (numpy in, tensors out).

Requests come and go, and a slot is handed on. The timeline depends on the trace, not on what a policy commits of it:
each request takes its recorded steps in order, so every policy meets the same steps (step resampling).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..trace import Trace

MIXED, DRIFT = "mixed", "drift"
ORDERS = (MIXED, DRIFT)


class Moment(NamedTuple):
    """One step: the requests that are there."""

    slots: Tensor  # int64 [B]
    rows: Tensor  # int64 [B], row of the trace
    new: Tensor  # int64 [<= B], slots whose request takes its first step now


@dataclass(frozen=True)
class Load:
    """How requests come.

    Args:
        slots: concurrent requests at most.
        arrivals: None keeps every slot busy, and ends when a slot finds no next request. Else the mean number of
            requests that arrive per step (Poisson); the replay ends when all are served.
        order: "mixed" shuffles the requests; "drift" shuffles, but keeps the trace's last domain for the second half.
        max_steps: stop after so many.
        cycle: begin again with the first request when none is left; needs max_steps.
    """

    slots: int
    arrivals: float | None = None
    order: str = MIXED
    seed: int = 0
    max_steps: int | None = None
    cycle: bool = False

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ValueError(f"slots: expected at least 1, got {self.slots}")
        if self.arrivals is not None and not 0 < self.arrivals <= 1e6:
            raise ValueError(f"arrivals: expected a number above 0, got {self.arrivals}")
        if self.order not in ORDERS:
            raise ValueError(f"order: expected one of {', '.join(ORDERS)}, got {self.order!r}")
        if self.max_steps is not None and self.max_steps < 1:
            raise ValueError(f"steps: expected at least 1, got {self.max_steps}")
        if self.cycle and self.max_steps is None:
            raise ValueError("cycle: needs max_steps, or the replay never ends")


def order_requests(trace: Trace, load: Load, among: Sequence[int] | None = None) -> list[int]:
    """Indices of the trace's requests, or of those `among` them, in the order of their coming."""
    domain = trace.domain[trace.request_starts]
    order = torch.randperm(len(domain), generator=torch.Generator().manual_seed(load.seed)).tolist()
    if among is not None:
        allowed = set(among)
        order = [i for i in order if i in allowed]
    if load.order == DRIFT:
        last = domain.max()
        order.sort(key=lambda i: bool(domain[i] == last))
    return order


def timeline(trace: Trace, load: Load, among: Sequence[int] | None = None) -> list[Moment]:
    """The steps of a replay. ValueError if there are fewer requests than slots to keep busy."""
    order = order_requests(trace, load, among)
    if load.arrivals is None and not load.cycle and load.slots > len(order):
        raise ValueError(f"slots: expected at most the {len(order)} requests, got {load.slots}")
    starts = trace.request_starts
    ends = np.append(starts[1:], len(trace.step))
    coming, waiting = deque(order), deque[int]()
    row: list[int] = [0] * load.slots
    last: list[int] = [0] * load.slots  # row == last: the slot is free
    random = np.random.default_rng(load.seed)
    moments: list[Moment] = []
    while load.max_steps is None or len(moments) < load.max_steps:
        for _ in range(load.slots if load.arrivals is None else int(random.poisson(load.arrivals))):
            if not coming and load.cycle:
                coming.extend(order)
            if coming and (load.arrivals is not None or len(waiting) < load.slots):
                waiting.append(coming.popleft())
        new = []
        for slot in range(load.slots):
            if row[slot] == last[slot] and waiting:
                request = waiting.popleft()
                row[slot], last[slot] = int(starts[request]), int(ends[request])
                new.append(slot)
        busy = [slot for slot in range(load.slots) if row[slot] < last[slot]]
        if load.arrivals is None and len(busy) < load.slots:
            break
        if not busy:
            if not coming and not waiting:
                break
            continue
        moments.append(Moment(torch.tensor(busy), torch.tensor([row[slot] for slot in busy]), torch.tensor(new).long()))
        for slot in busy:
            row[slot] += 1
    return moments
