"""Rows as words: what `scatter_to_strided` and `gather_from_strided` share.

Bytes are moved, not interpreted: a row is a run of the widest words that divide its bytes and both addresses. 16 bytes
are two int64 side by side: their offset is a multiple of two that the compiler can see (`row_units * PER`), so that it
joins them into 16-byte accesses. A program moves TILE words: a piece of one long row, or several short rows, so that
one token a row costs no more programs than one vocabulary a row. All offsets are 64-bit.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._launch import cdiv

TILE = 1024
MOVED = ("compact", "strided")  # addresses that the compiler must know to be multiples of 16, to join words to 16 bytes
MAX_COLUMN_PROGRAMS = 65535  # of the grid's second axis
_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}


class Rows(NamedTuple):
    """Both tensors as words, and how a row is cut up."""

    source: Tensor
    destination: Tensor
    units: int  # of one row
    per: int  # words in a unit
    columns: int  # words of one program in a row

    def grid(self) -> tuple[int, int]:
        return (
            cdiv(self.destination.shape[0], TILE // self.columns),
            min(MAX_COLUMN_PROGRAMS, cdiv(self.units * self.per, self.columns)),
        )


def as_words(source: Tensor, destination: Tensor) -> Rows:
    """Views of two contiguous tensors whose rows have the same size."""
    size = destination[:1].numel() * destination.element_size() if destination.shape[0] else 0
    unit = 16
    while (size | source.data_ptr() | destination.data_ptr()) % unit:
        unit //= 2
    word, per = _WORDS[unit], 2 if unit == 16 else 1
    columns = min(TILE, triton.next_power_of_2(max(1, size // unit * per)))
    return Rows(_flat(source, word), _flat(destination, word), size // unit, per, columns)


def _flat(t: Tensor, word: torch.dtype) -> Tensor:
    """The tensor's memory as [rows, words]; not a reshape, since one row may have any stride and be contiguous."""
    rows, size = t.shape[0], t.numel() * t.element_size()
    if size == 0:
        return t.new_empty([rows, 0], dtype=word)
    return t.as_strided([t.numel()], [1]).view(torch.uint8).view(word).view(rows, -1)


def fill_words(fill: int, element_bytes: int) -> tuple[int, int]:
    """16 bytes in which every element has the bit pattern `fill`, as two int64."""
    element = (fill & ((1 << 8 * element_bytes) - 1)).to_bytes(element_bytes, "little")
    pattern = element * (16 // element_bytes)
    return int.from_bytes(pattern[:8], "little", signed=True), int.from_bytes(pattern[8:], "little", signed=True)


@triton.jit
def move_rows(
    source, destination, from_row, to_row, copied, filled, row_units, fill_low, fill_high,
    COLUMNS: tl.constexpr, PER: tl.constexpr,
):  # fmt: skip
    """Copy row from_row to row to_row where `copied`, write the fill where `filled`, for a block of rows."""
    word_type: tl.constexpr = destination.dtype.element_ty
    PER_HALF: tl.constexpr = 64 // word_type.primitive_bitwidth  # words in 8 bytes
    row_words = row_units.to(tl.int64) * PER
    written = copied | filled
    from_word = (from_row.to(tl.int64) * row_words)[:, None]
    to_word = (to_row.to(tl.int64) * row_words)[:, None]
    for block in range(tl.program_id(1), tl.cdiv(row_words, COLUMNS), tl.num_programs(1)):
        column = (block * COLUMNS + tl.arange(0, COLUMNS).to(tl.int64))[None, :]
        inside = column < row_words
        half = tl.where(column // PER_HALF % 2 == 0, fill_low, fill_high)
        fill = (half >> (column % PER_HALF * word_type.primitive_bitwidth)).to(word_type)
        word = tl.load(source + from_word + column, mask=copied[:, None] & inside, other=0)
        tl.store(destination + to_word + column, tl.where(copied[:, None], word, fill), mask=written[:, None] & inside)
