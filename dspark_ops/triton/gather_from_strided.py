"""`gather_from_strided` in Triton: one launch over (row of the result, block of columns); bound by memory.

A row's owner is found by the bisection that the operator's docstring defines, which also says what offsets that
decrease mean: log2(B) + 1 loads of cached offsets per row, hidden behind the rows that other programs move.
"""

from __future__ import annotations

from functools import partial

import triton.language as tl
from torch import Tensor

from ._launch import contiguous, jit
from ._move import MOVED, TILE, as_words, fill_words, move_rows


@partial(jit, aligned=MOVED)
def _gather_from_strided_kernel(
    strided, cu_seqlens, compact, rows, batch, steps, width, row_units: tl.int64,
    fill_low: tl.int64, fill_high: tl.int64, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PER: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    low = tl.zeros([ROWS], tl.int32)
    high = low + batch
    for _ in range(steps):
        middle = (low + high) // 2
        searching = inside & (low < high)
        before = searching & (tl.load(cu_seqlens + middle + 1, mask=searching, other=0) <= row)
        high = tl.where(searching & (before == 0), middle, high)
        low = tl.where(before, middle + 1, low)
    owned = inside & (low < batch)
    offset = row - tl.load(cu_seqlens + low, mask=owned, other=0)
    copied = owned & (offset >= 0) & (offset < width)
    source = low.to(tl.int64) * width + offset
    move_rows(strided, compact, source, row, copied, inside, row_units, fill_low, fill_high, COLUMNS, PER)


def gather_from_strided(strided: Tensor, cu_seqlens: Tensor, fill: int, compact: Tensor) -> None:
    if compact.numel() == 0:
        return
    batch = cu_seqlens.shape[0] - 1
    words = as_words(strided.contiguous(), compact)
    _gather_from_strided_kernel[words.grid()](
        words.source, contiguous(cu_seqlens), words.destination, compact.shape[0], batch, batch.bit_length(),
        strided.shape[0] // max(batch, 1), words.units, *fill_words(fill, compact.element_size()),
        ROWS=TILE // words.columns, COLUMNS=words.columns, PER=words.per,
    )  # fmt: skip
