"""`scatter_to_strided` in Triton: one launch over (row of the result, block of columns); bound by memory.

The compact rows are read once, the result is written once: (R + B·N)·D bytes, and 8 more per row for its offsets.
"""

from __future__ import annotations

from functools import partial

import triton.language as tl
from torch import Tensor

from ._launch import contiguous, jit
from ._move import MOVED, TILE, as_words, fill_words, move_rows


@partial(jit, aligned=MOVED)
def _scatter_to_strided_kernel(
    compact, cu_seqlens, strided, rows, strided_rows, width, row_units: tl.int64,
    fill_low: tl.int64, fill_high: tl.int64, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PER: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < strided_rows
    request, offset = row // width, row % width
    begin = tl.load(cu_seqlens + request, mask=inside, other=0).to(tl.int64)
    end = tl.load(cu_seqlens + request + 1, mask=inside, other=0).to(tl.int64)
    source = begin + offset
    copied = inside & (offset < end - begin) & (source >= 0) & (source < rows)
    move_rows(compact, strided, source, row, copied, inside, row_units, fill_low, fill_high, COLUMNS, PER)


def scatter_to_strided(compact: Tensor, cu_seqlens: Tensor, width: int, fill: int, strided: Tensor) -> None:
    if strided.numel() == 0:
        return
    words = as_words(compact.contiguous(), strided)
    _scatter_to_strided_kernel[words.grid()](
        words.source, contiguous(cu_seqlens), words.destination, compact.shape[0], strided.shape[0], width,
        words.units, *fill_words(fill, strided.element_size()),
        ROWS=TILE // words.columns, COLUMNS=words.columns, PER=words.per,
    )  # fmt: skip
