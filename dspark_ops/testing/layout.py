"""Cases of the layout operators, and the index arrays that several families share."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from .generate import generator, index_dtype, ints, pick_batch, poison

_INT32_MAX = (1 << 31) - 1
_DTYPES = [
    torch.bool,
    torch.uint8,
    torch.bfloat16,
    torch.float32,
    torch.int32,
    torch.int64,
    torch.complex64,
    torch.complex128,
]


def verify_lens(rng: Random, batch: int) -> Tensor:
    """Lengths as a plan gives them, or negative and huge ones."""
    low, high = rng.choice([(1, 8), (0, 8), (0, 1), (-3, 4), (0, 300), (1 << 29, _INT32_MAX), (-(1 << 31), _INT32_MAX)])
    return ints(rng, batch, low, high)


def cu_seqlens(rng: Random, batch: int) -> Tensor:
    """Row offsets as a layout gives them, or ones that start elsewhere, decrease or are senseless."""
    high = rng.choice([1, 8, 8, 40])
    offsets = [0]
    for _ in range(batch):
        offsets.append(offsets[-1] + rng.randint(0, high))
    kind = rng.randint(0, 5)
    if kind == 0:
        shift = rng.randint(-20, 20)
        offsets = [n + shift for n in offsets]
    elif kind == 1:
        rng.shuffle(offsets)
    elif kind == 2:
        offsets[rng.randint(0, batch)] = rng.choice([-(1 << 31), -1, 3, _INT32_MAX])
    return torch.tensor(offsets, dtype=torch.int32)


def row_capacity(rng: Random, batch: int) -> int:
    """A row count around what `batch` requests need: none, too few, about enough, plenty."""
    return rng.choice([0, 1, batch, rng.randint(0, 5 * batch + 3), 9 * batch + rng.randint(0, 40)])


@generator
def ragged_layout(rng: Random) -> tuple[Any, ...]:
    batch = pick_batch(rng)
    gamma, rows = rng.randint(1, 9), row_capacity(rng, batch)
    low, high = rng.choice([(0, 5000), (-4, 4), (_INT32_MAX - 9, _INT32_MAX), (-(1 << 31), _INT32_MAX)])
    prefix = ints(rng, batch, low, high, index_dtype(rng))
    if batch and prefix.dtype is torch.int64:
        prefix[rng.randrange(batch)] = rng.choice([0, 1 << 40, (1 << 63) - 2, -(1 << 63)])
    root_tokens = ints(rng, batch, -1, 150_000, torch.int64)
    draft_tokens = ints(rng, batch * gamma, -1, 150_000, torch.int64).reshape(batch, gamma)
    wanted = rng.choice([(True,) * 4, (False,) * 4, tuple(rng.random() < 0.5 for _ in range(4))])
    outputs = [poison([rows], torch.int64), poison([rows], torch.int64), poison([batch], torch.int32)]
    outputs.append(poison([batch + 1], torch.int32))
    optional = [t if keep else None for t, keep in zip(outputs, wanted, strict=True)]
    with_prefix = optional[0] is not None or optional[2] is not None or optional[3] is not None
    with_tokens = optional[1] is not None
    return (
        verify_lens(rng, batch),
        prefix if with_prefix else None,
        root_tokens if with_tokens else None,
        draft_tokens if with_tokens else None,
        poison([batch + 1], torch.int32),
        poison([rows], torch.int32),
        poison([rows], torch.int32),
        *optional,
    )


@generator
def pad_to_bucket(rng: Random) -> tuple[Any, ...]:
    batch = pick_batch(rng)
    slots = batch + rng.choice([0, 0, 1, 3, rng.randint(0, 40)])
    rows = rng.choice([row_capacity(rng, batch), 6 * batch + 7, _INT32_MAX])
    cap = rng.choice([-1, -1, 0, 1, 4, 8, _INT32_MAX])
    return verify_lens(rng, batch), rows, cap, poison([slots], torch.int32), poison([slots], torch.int32)


def _rows_of_bytes(rng: Random, rows: int, trailing: list[int], dtype: torch.dtype) -> Tensor:
    """Random bytes read as `dtype`; for bool only 0 and 1 are values."""
    t = poison([rows, *trailing], dtype)
    if t.numel():
        size = t.numel() * t.element_size()
        data = torch.frombuffer(bytearray(rng.randbytes(size)), dtype=torch.uint8)
        t.view(-1).view(torch.uint8).copy_(data & 1 if dtype is torch.bool else data)
    return t


def _move(rng: Random) -> tuple[int, int, list[int], torch.dtype, int]:
    batch, dtype = pick_batch(rng, 20), rng.choice(_DTYPES)
    trailing = rng.choice([[], [1], [3], [7, 2], [0], [rng.randint(1, 400)]])
    fill = rng.choice([0, 1, -1, rng.getrandbits(63), -rng.getrandbits(63)])
    if dtype is torch.bool:
        fill = rng.choice([0, 1])
    return batch, rng.choice([1, 2, 8, 17]), trailing, dtype, fill


@generator
def scatter_to_strided(rng: Random) -> tuple[Any, ...]:
    batch, width, trailing, dtype, fill = _move(rng)
    compact = _rows_of_bytes(rng, row_capacity(rng, batch), trailing, dtype)
    return compact, cu_seqlens(rng, batch), width, fill, poison([batch * width, *trailing], dtype)


@generator
def gather_from_strided(rng: Random) -> tuple[Any, ...]:
    batch, width, trailing, dtype, fill = _move(rng)
    strided = _rows_of_bytes(rng, batch * width, trailing, dtype)
    return strided, cu_seqlens(rng, batch), fill, poison([row_capacity(rng, batch), *trailing], dtype)
