"""A causal model with random weights: sliding-window attention, and one layer each of C4 and C128 compression.

All arithmetic is float64. A row's result then depends on the shape of a batch by about 1e-16, which no choice of a
token feels: two ways to decode either give the same tokens or are really different.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .cache import Cache, LayerCache
    from .step import LayerStep, Step


@dataclass(frozen=True)
class Config:
    """Sizes of the model, its memory and its batches."""

    vocab: int = 48
    width: int = 16
    gamma: int = 7
    window: int = 8  # tokens that attention sees uncompressed
    page: int = 32  # tokens per page of the window cache
    ratios: tuple[tuple[int, int], ...] = ((4, 2), (128, 1))  # ratio and coff, a layer each
    max_len: int = 192
    slots: int = 12
    padding_slots: int = 4  # of captured graphs, above the requests
    markov: float = 2.0  # how much of the target the draft knows: the pull of the token before
    deep: float = 1.0  # and how much it does not


def rope(x: Tensor, position: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    rate = torch.pow(100.0, -torch.arange(half, dtype=x.dtype) / half)
    angle = position[..., None].to(x.dtype) * rate
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def normalised(x: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


class Layer:
    """Attention over a window and compressed entries, then a small MLP."""

    def __init__(self, config: Config, index: int, random: torch.Generator) -> None:
        d = config.width

        def weights(rows: int, columns: int) -> Tensor:
            return torch.randn(rows, columns, generator=random, dtype=torch.float64) / math.sqrt(rows)

        self.config, self.index = config, index
        self.ratio, self.coff = config.ratios[index]
        self.query, self.key, self.value, self.out = (weights(d, d) for _ in range(4))
        self.compress = weights(d, 2 * self.coff * d)  # per token: content, then score
        self.entry_key, self.entry_value = weights(d, d), weights(d, d)
        self.up, self.down = weights(d, 2 * d), weights(2 * d, d)

    def __call__(self, x: Tensor, step: Step, cache: Cache) -> Tensor:
        h, position = normalised(x), step.position
        pool = cache.window
        slot = torch.where(step.real, pool.rows(step.request, position), 0)
        pool.data[self.index, slot] = torch.cat([rope(h @ self.key, position), h @ self.value], -1)
        self._write_entries(h @ self.compress, step, step.layers[self.index], cache.layers[self.index])
        x = x + self._attend(rope(h @ self.query, position), position, step.request, cache) @ self.out
        return x + torch.tanh(normalised(x) @ self.up) @ self.down

    def _attend(self, query: Tensor, position: Tensor, request: Tensor, cache: Cache) -> Tensor:
        """Each row sees the last `window` tokens and every entry that is complete at its position."""
        recent = position[:, None] + torch.arange(1 - self.config.window, 1)
        pool = cache.layers[self.index].entries
        complete = int(position.max() + 1) // self.ratio if len(position) else 0
        entry = torch.arange(complete).expand(len(position), -1)
        seen = torch.cat([recent >= 0, entry < (position[:, None] + 1) // self.ratio], 1)
        window = cache.window.data[self.index, cache.window.rows(request[:, None], recent.clamp(min=0))]
        memory = torch.cat([window, pool.data[0, pool.rows(request[:, None], entry)]], 1)
        memory = torch.where(seen[..., None], memory, 0)
        key, value = memory.chunk(2, -1)
        score = (key @ query[..., None])[..., 0] / math.sqrt(query.shape[-1])
        return (score.masked_fill(~seen, -torch.inf).softmax(-1)[:, None] @ value)[:, 0]

    def _write_entries(self, state: Tensor, step: Step, here: LayerStep, memory: LayerCache) -> None:
        """Complete the entries whose last token is in this step, then keep the state that later steps may need."""
        row = here.entries.query_row.long().clamp(min=0)
        done = here.entries.query_row >= 0
        if bool(done.any()):  # nothing to read in a step without entries
            row, slot, at = row[done], here.entries.slot[done].long(), here.entries.rope_position[done]
            pooled = self._pool(state, row, step, here, memory)
            content = torch.cat([rope(pooled @ self.entry_key, at), pooled @ self.entry_value], -1)
            memory.entries.data[0, slot] = content
        self._keep_state(state, step, here, memory)

    def _pool(self, state: Tensor, row: Tensor, step: Step, here: LayerStep, memory: LayerCache) -> Tensor:
        """Content weighted by the softmax of the scores, over the coff·ratio tokens that end at each row."""
        span = self.coff * self.ratio
        back = torch.arange(1 - span, 1)
        request = step.request[row][:, None]
        position = step.position[row][:, None] + back
        fresh = position >= step.start[request]
        old = _stored(memory)[_state_row(here, memory, step, request, position)]
        tokens = torch.where(fresh[..., None], state[(row[:, None] + back).clamp(min=0)], old)
        half = torch.arange(span) // self.ratio  # with overlap: the part for the older window, then for the newer
        content, score = tokens.view(len(row), span, 2, self.coff, -1)[:, torch.arange(span), :, half].unbind(2)
        there = (position >= 0).T[..., None]
        weight = score.masked_fill(~there, -torch.inf).softmax(0)
        return (weight * torch.where(there, content, 0)).sum(0)

    def _keep_state(self, state: Tensor, step: Step, here: LayerStep, memory: LayerCache) -> None:
        keep, position = step.real, step.position
        if memory.ring is not None:  # the explicit form keeps what is needed if all rows are accepted, and no more
            end = (step.start + step.seqused) // self.ratio - (self.coff - 1)
            keep = keep & (position >= end[step.request] * self.ratio)
        target = _state_row(here, memory, step, step.request, position)
        target = torch.where(keep, target, 0 if memory.ring is None else memory.dummy_row)
        _stored(memory)[target] = state


def _stored(memory: LayerCache) -> Tensor:
    if memory.ring is not None:
        return memory.ring
    assert memory.blocks is not None
    return memory.blocks.data[0]


def _state_row(here: LayerStep, memory: LayerCache, step: Step, request: Tensor, position: Tensor) -> Tensor:
    """Row of the state at a position, by the table of this step."""
    if memory.ring is not None:
        column = position - step.start[request] + memory.coff * memory.ratio
        return here.table[request, column.clamp(0, here.table.shape[1] - 1)].long()
    assert memory.blocks is not None
    block = (position // memory.blocks.page).clamp(0, here.table.shape[1] - 1)
    return here.table[request, block].long() * memory.blocks.page + position % memory.blocks.page


class Model:
    """Logits of the token after each row. A part of them depends on the row's own token alone: the draft knows it."""

    def __init__(self, config: Config, seed: int = 0) -> None:
        random = torch.Generator().manual_seed(seed)
        self.config = config
        self.embedding = torch.randn(config.vocab, config.width, generator=random, dtype=torch.float64)
        self.markov = config.markov * torch.randn(config.vocab, config.vocab, generator=random, dtype=torch.float64)
        self.head = torch.randn(config.width, config.vocab, generator=random, dtype=torch.float64)
        self.layers = [Layer(config, i, random) for i in range(len(config.ratios))]

    def __call__(self, step: Step, cache: Cache) -> Tensor:
        """float64 [R, vocab]; rows of padding are not meant to be read."""
        ids = step.layout.verify_ids
        x = self.embedding[ids]
        for layer in self.layers:
            x = layer(x, step, cache)
        deep = normalised(x) @ self.head * (self.config.deep / math.sqrt(self.config.width))
        return self.markov[ids] + deep
