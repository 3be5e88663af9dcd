"""The ring of lagged confidences: what a decision may look at is what was observed `depth` writes ago (DESIGN 6).

An entry keeps one row of confidences per slot, and the generation of the request that they belong to. A write touches
the rows of its own requests only, so a slot that took no part in a step keeps what it had in that entry: older, yet of
the past, and void as soon as the generation differs. Generation 0 is never current, so an entry that was never
written is not fresh.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _checks


class Entry(NamedTuple):
    """The rows of one observation, by slot, on the host."""

    confidence: Tensor  # float32 [slots, γ]
    generation: Tensor  # int64 [slots]


class _Landing(NamedTuple):
    """A copy from the device that is under way: where its rows go once `copied` has happened."""

    copied: Any
    slots: Tensor
    generation: Tensor


class LagRing:
    """`depth` entries, the oldest of which is read and then overwritten.

    Confidences on an accelerator are copied to pinned memory without a synchronisation, one event per entry. Their rows
    are put in place when the entry is next used, `depth` steps later; if the copy should not be over even then, that
    one copy is waited for and counted in `late`. Not waiting would let ranks plan from different histories.
    """

    def __init__(self, depth: int, slots: int, gamma: int, device: torch.device) -> None:
        _checks.integer("lag", depth, 1, 1 << 10)
        confidence = torch.zeros(depth, slots, gamma)
        generation = torch.zeros(depth, slots, dtype=torch.int64)
        self._entries = [Entry(c, g) for c, g in zip(confidence, generation, strict=True)]
        self._landing: list[_Landing | None] = [None] * depth
        self._device = device
        self._at = 0
        self.late = 0
        if device.type != "cpu":
            self._module = torch.get_device_module(device)
            self._staged = torch.empty(depth, slots, gamma, pin_memory=True)

    def read(self) -> Entry:
        """The entry that the next write overwrites."""
        self._land()
        return self._entries[self._at]

    def write(self, slots: Tensor, confidence: Tensor, generation: Tensor) -> None:
        """Put confidences [B, γ] (on the ring's device) of requests in `slots`, int64 on the host, into the entry."""
        if self._device.type == "cpu":
            entry = self._entries[self._at]
            entry.confidence.index_copy_(0, slots, confidence.float())
            entry.generation.index_copy_(0, slots, generation)
        else:
            self._land()
            self._staged[self._at][: len(slots)].copy_(confidence.float(), non_blocking=True)
            copied = self._module.Event()
            copied.record(self._module.current_stream(self._device))
            self._landing[self._at] = _Landing(copied, slots.clone(), generation.clone())
        self._at = (self._at + 1) % len(self._entries)

    def _land(self) -> None:
        landing = self._landing[self._at]
        if landing is None:
            return
        if not landing.copied.query():
            self.late += 1
            landing.copied.synchronize()
        entry = self._entries[self._at]
        entry.confidence.index_copy_(0, landing.slots, self._staged[self._at][: len(landing.slots)])
        entry.generation.index_copy_(0, landing.slots, landing.generation)
        self._landing[self._at] = None
