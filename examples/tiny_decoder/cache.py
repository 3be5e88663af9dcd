"""Paged memory of the decoder. Page 0 of every pool is reserved: padding is written there, and nobody reads it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor

from .model import Config


class PagedPool:
    """`copies` arrays (one per layer) of pages with `page` rows each, behind one page table per request slot.

    A page that is given back is filled with NaN, so that a read of what no longer belongs to a request shows.
    """

    def __init__(self, config: Config, copies: int, page: int, rows: int, columns: int) -> None:
        per_request = -(-rows // page)
        pages = 1 + config.slots * per_request
        self.page = page
        self.data = torch.full((copies, pages * page, columns), torch.nan, dtype=torch.float64)
        self.table = torch.zeros(config.slots + config.padding_slots, per_request, dtype=torch.int32)
        self._free = deque(range(1, pages))

    def acquire(self, slot: int, rows: int) -> None:
        count = -(-rows // self.page)
        self.table[slot, :count] = torch.tensor([self._free.popleft() for _ in range(count)])

    def release(self, slot: int) -> None:
        for page in self.table[slot][self.table[slot] > 0].tolist():
            self.data[:, page * self.page : (page + 1) * self.page] = torch.nan
            self._free.append(page)
        self.table[slot] = 0

    def rows(self, request: Tensor, item: Tensor) -> Tensor:
        """Row of a request's item; items past the table are in the reserved page."""
        column = item // self.page
        inside = (column >= 0) & (column < self.table.shape[1])
        pages = self.table[request, column.clamp(0, self.table.shape[1] - 1)].long()
        return torch.where(inside, pages, 0) * self.page + item % self.page


@dataclass
class LayerCache:
    """What one layer keeps beside the sliding window: compressed entries, and the state of its compressor."""

    ratio: int
    coff: int
    entries: PagedPool
    blocks: PagedPool | None  # state in block form
    ring: Tensor | None  # state in explicit-row form: [rows, columns], the last row is the dummy
    ring_rows: int  # rows of one ring

    @property
    def dummy_row(self) -> int:
        assert self.ring is not None
        return self.ring.shape[0] - 1


class Cache:
    """Window keys and values, compressed entries and compressor state of all request slots."""

    def __init__(self, config: Config, state: str) -> None:
        if state not in ("blocks", "rows"):
            raise ValueError(f"state: expected 'blocks' or 'rows', got {state!r}")
        self.config, length = config, config.max_len + config.gamma + 1
        self.window = PagedPool(config, len(config.ratios), config.page, length, 2 * config.width)
        self.layers = [self._layer(ratio, coff, length, state) for ratio, coff in config.ratios]
        # Tokens of the window are addressed by their row; here no token ever leaves the cache.
        self.full_to_swa = torch.arange(self.window.data.shape[1])

    def _layer(self, ratio: int, coff: int, length: int, state: str) -> LayerCache:
        config, columns = self.config, 2 * coff * self.config.width
        entries = PagedPool(config, 1, max(1, config.page // ratio), -(-length // ratio), 2 * config.width)
        if state == "blocks":
            return LayerCache(ratio, coff, entries, PagedPool(config, 1, 16, length, columns), None, 0)
        ring = coff * ratio + config.gamma
        rings = self.window.data.shape[1] // config.page if coff == 2 else config.slots
        rows = torch.full((rings * ring + 1, columns), torch.nan, dtype=torch.float64)
        return LayerCache(ratio, coff, entries, None, rows, ring)

    def acquire(self, slot: int, tokens: int) -> None:
        length = tokens + self.config.gamma + 1
        self.window.acquire(slot, length)
        for layer in self.layers:
            layer.entries.acquire(slot, -(-length // layer.ratio))
            if layer.blocks is not None:
                layer.blocks.acquire(slot, length)

    def release(self, slot: int) -> None:
        self.window.release(slot)
        for layer in self.layers:
            layer.entries.release(slot)
            if layer.blocks is not None:
                layer.blocks.release(slot)
