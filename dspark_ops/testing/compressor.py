"""Cases of the compressor operators."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from .generate import generator, index_dtype, ints, pick_batch, poison
from .layout import cu_seqlens, row_capacity

_INT32_MAX = (1 << 31) - 1


@generator
def max_safe_verify_len(rng: Random) -> tuple[Any, ...]:
    batch = pick_batch(rng)
    ratio, coff = rng.choice([(4, 2), (128, 1), (1, 1), (7, 3)])
    low, high = rng.choice([(0, 3 * ratio), (0, 1 << 20), (-5, 5), ((1 << 31) - 300, (1 << 31) - 1)])
    start_pos = ints(rng, batch, low, high, index_dtype(rng))
    ring = rng.choice([0, 0, coff * ratio, coff * ratio + 8, 16])
    return start_pos, ratio, coff, ring, rng.choice([1, 2, 8, 16, 1 << 18]), poison([batch], torch.int32)


def _lengths(rng: Random, batch: int, ratio: int) -> tuple[Tensor, Tensor]:
    """start_pos and seqused: typical ones, ones around an entry's end, senseless ones."""
    low, high = rng.choice([(0, 3 * ratio), (0, 1 << 20), (-5, 5), (_INT32_MAX - 300, _INT32_MAX)])
    used = rng.choice([(0, 8), (0, 0), (0, 3 * ratio), (-4, 4), (1 << 30, _INT32_MAX)])
    start_pos = ints(rng, batch, low, high, index_dtype(rng))
    if batch and start_pos.dtype is torch.int64 and rng.random() < 0.2:
        start_pos[0] = rng.choice([1 << 40, -(1 << 63), (1 << 63) - 1])
    return start_pos, ints(rng, batch, *used)


def _page_table(rng: Random, batch: int) -> tuple[Tensor, int, int]:
    """Pages with holes and, at times, ids whose slots overflow; page size; pad slot."""
    pages, dtype = rng.choice([0, 1, 4, 40]), index_dtype(rng)
    high = rng.choice([100, 100, torch.iinfo(dtype).max])
    return ints(rng, batch * pages, -2, high, dtype).reshape(batch, pages), rng.choice([1, 2, 64, 100]), -1


def _entries(batch: int, rows: int, ratio: int, slot_dtype: torch.dtype) -> tuple[Tensor, ...]:
    capacity = min(rows, rows // ratio + batch)
    shapes = ([batch + 1], torch.int32), ([capacity], torch.int64), ([capacity], torch.int32), ([capacity], slot_dtype)
    return tuple(poison(shape, dtype) for shape, dtype in shapes)


@generator
def compressor_layout(rng: Random) -> tuple[Any, ...]:
    batch = pick_batch(rng)
    rows = row_capacity(rng, batch)
    ratio, ratio2 = rng.choice([(4, 128), (128, 4), (1, 7)])
    start_pos, seqused = _lengths(rng, batch, ratio)
    table, table2 = _page_table(rng, batch), _page_table(rng, batch)
    first = _entries(batch, rows, ratio, index_dtype(rng))
    second = _entries(batch, rows, ratio2, index_dtype(rng))
    lengths = tuple(poison([batch], torch.int32) for _ in range(3))
    args = (cu_seqlens(rng, batch), seqused, start_pos, rows, rng.random() < 0.5, ratio, *table)
    if rng.random() < 0.3:
        return (*args, 1, None, 1, 0, *lengths, *first, None, None, None, None)
    return (*args, ratio2, *table2, *lengths, *first, *second)


@generator
def state_rows(rng: Random) -> tuple[Any, ...]:
    batch = pick_batch(rng, 30)
    ratio, coff, ring = rng.choice([(128, 1, 256), (4, 2, 16), (4, 2, 1 << 30), (3, 3, 5)])
    start_pos, seqused = _lengths(rng, batch, ratio)
    slots, context, tokens = rng.choice([(8, 600, 2000), (1, 5, 3), (0, 4, 4), (3, 0, 9), (2, 9, 0)])
    slot_high = rng.choice([slots, slots + 2, _INT32_MAX])
    request_slot = ints(rng, batch, -1, slot_high, index_dtype(rng))
    mapping: tuple[Any, ...] = (None, None)
    swa_page = 0
    if rng.random() < 0.6:
        w_dtype = index_dtype(rng)
        w_high = rng.choice([5000, 5000, torch.iinfo(w_dtype).max])
        req_to_token = ints(rng, slots * context, -1, tokens, torch.int32).reshape(slots, context)
        mapping = (req_to_token, ints(rng, tokens, -3, w_high, w_dtype))
        swa_page = rng.choice([1, 64, 128])
    out = poison([batch, coff * ratio + rng.choice([1, 4, 16])], torch.int32)
    numbers = (ratio, coff, ring, swa_page, rng.choice([0, -1, 12345]))
    return (cu_seqlens(rng, batch), seqused, start_pos, request_slot, *mapping, *numbers, out)


@generator
def state_blocks(rng: Random) -> tuple[Any, ...]:
    batch = pick_batch(rng)
    ratio, coff = rng.choice([(4, 2), (128, 1), (7, 3)])
    start_pos, seqused = _lengths(rng, batch, ratio)
    blocks, dtype = rng.choice([0, 1, 5, 200]), index_dtype(rng)
    table = ints(rng, batch * blocks, -1, torch.iinfo(dtype).max, dtype).reshape(batch, blocks)
    return table, seqused, start_pos, ratio, coff, rng.choice([1, 2, 8, 128, 1 << 20]), poison([batch, blocks], dtype)
