"""`compressor_layout` in Triton: both ratios in one launch; bound by its launch.

The grid is (1 + blocks of places, tables). Program (0, k) writes table k's offsets, and for k = 0 the lengths; program
(1 + j, k) writes PLACES entries of table k. Each runs over starts and lengths itself (8 to 12·B bytes, cached; see
`_counting`). Lengths reach 2^32 - 2, so 32-bit division gives the entry numbers; 64-bit division is for slots only.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ._counting import INT32_MAX, PLACES, chunk, count_ends, owners, saturate
from ._launch import cdiv, contiguous, jit


@triton.jit
def _lengths(seqused, start_pos, i, batch):
    start = saturate(tl.load(start_pos + i, mask=i < batch, other=0).to(tl.int64))
    return start, saturate(tl.load(seqused + i, mask=i < batch, other=0).to(tl.int64))


@triton.jit
def _first_entry(length, ratio):
    return (length.to(tl.uint32) // ratio.to(tl.uint32)).to(tl.int64)


@triton.jit
def _per_request(
    seqused, start_pos, start_pos_out, seqused_out, seqused_kv, offsets, batch, least_kv, ratio,
    CHUNK: tl.constexpr, LENGTHS: tl.constexpr,
):  # fmt: skip
    tl.store(offsets, 0)
    total = tl.zeros([], tl.int64)
    for first in range(0, batch, CHUNK):
        i = first + tl.arange(0, CHUNK)
        inside = i < batch
        start, used = _lengths(seqused, start_pos, i, batch)
        entries = _first_entry(start + used, ratio) - _first_entry(start, ratio)
        tl.store(offsets + 1 + i, saturate(total + tl.cumsum(entries, 0)).to(tl.int32), mask=inside)
        total += tl.sum(entries, 0)
        if LENGTHS:
            tl.store(start_pos_out + i, start.to(tl.int32), mask=inside)
            tl.store(seqused_out + i, used.to(tl.int32), mask=inside)
            tl.store(seqused_kv + i, saturate(tl.maximum(start + used, least_kv)).to(tl.int32), mask=inside)


@triton.jit
def _slot(page_table, slot, request, entry, valid, pages, page_size, pad_slot):
    """Slot of an entry; the pad slot when its page is missing or the slot does not fit the output's type."""
    page, within = entry // page_size, entry % page_size
    page_id = tl.load(page_table + request * pages + page, mask=valid & (page < pages), other=-1).to(tl.int64)
    # 2^31 - 1 or 2^63 - 1: the largest value of the output's type.
    largest = (1 << (slot.dtype.element_ty.primitive_bitwidth - 1)) - 1
    fits = (page_id >= 0) & (page_id <= (largest - within) // page_size)
    return tl.where(fits, tl.where(fits, page_id, 0) * page_size + within, pad_slot)


@triton.jit
def _per_place(
    first_place, cu_seqlens, seqused, start_pos, page_table, rope_position, query_row, slot,
    batch, rows, capacity, ratio, pages, page_size, pad_slot, CHUNK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    counts = tl.zeros([TILE], tl.int32)
    before = tl.zeros([], tl.int32)
    begin = tl.zeros([], tl.int64)
    total = tl.zeros([], tl.int64)
    for first in range(0, batch, CHUNK):
        i = first + tl.arange(0, CHUNK)
        start, used = _lengths(seqused, start_pos, i, batch)
        entries = _first_entry(start + used, ratio) - _first_entry(start, ratio)
        ends = tl.minimum(total + tl.cumsum(entries, 0), INT32_MAX)
        counts, before, begin = count_ends(ends, i < batch, first_place, counts, before, begin, TILE)
        total += tl.sum(entries, 0)
    place = first_place + tl.arange(0, TILE)
    inside = place < capacity
    request, begin_of = owners(place, counts, before, begin)
    taken = inside & (request < batch)
    start = saturate(tl.load(start_pos + request, mask=taken, other=0).to(tl.int64))
    first_row = tl.load(cu_seqlens + request, mask=taken, other=0).to(tl.int64)
    entry = _first_entry(start, ratio) + place - begin_of
    row = first_row + (entry + 1) * ratio - 1 - start
    valid = taken & (row >= 0) & (row < rows)
    slots = _slot(page_table, slot, request.to(tl.int64), entry, valid, pages, page_size, pad_slot)
    tl.store(rope_position + place, tl.where(valid, entry * ratio, 0), mask=inside)
    tl.store(query_row + place, tl.where(valid, row, -1).to(tl.int32), mask=inside)
    tl.store(slot + place, slots.to(slot.dtype.element_ty), mask=inside)


@triton.jit
def _table(
    cu_seqlens, seqused, start_pos, page_table, start_pos_out, seqused_out, seqused_kv, offsets, rope_position,
    query_row, slot, batch, rows, least_kv, ratio, pages, page_size, pad_slot, capacity,
    CHUNK: tl.constexpr, TILE: tl.constexpr, LENGTHS: tl.constexpr,
):  # fmt: skip
    first_place = (tl.program_id(0) - 1).to(tl.int64) * TILE
    if first_place < 0:
        _per_request(
            seqused, start_pos, start_pos_out, seqused_out, seqused_kv, offsets, batch, least_kv, ratio, CHUNK, LENGTHS
        )
    elif first_place < capacity:
        _per_place(
            first_place, cu_seqlens, seqused, start_pos, page_table, rope_position, query_row, slot,
            batch, rows, capacity, ratio, pages, page_size, pad_slot, CHUNK, TILE,
        )  # fmt: skip


@jit
def _compressor_layout_kernel(
    cu_seqlens, seqused, start_pos, page_table, page_table2, start_pos_out, seqused_out, seqused_kv,
    offsets, rope_position, query_row, slot, offsets2, rope_position2, query_row2, slot2, batch, rows, least_kv,
    ratio, pages, page_size, pad_slot: tl.int64, capacity, ratio2, pages2, page_size2, pad_slot2: tl.int64, capacity2,
    CHUNK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    if tl.program_id(1) == 0:
        _table(
            cu_seqlens, seqused, start_pos, page_table, start_pos_out, seqused_out, seqused_kv,
            offsets, rope_position, query_row, slot, batch, rows, least_kv,
            ratio, pages, page_size, pad_slot, capacity, CHUNK, TILE, True,
        )  # fmt: skip
    elif page_table2 is not None:
        _table(
            cu_seqlens, seqused, start_pos, page_table2, start_pos_out, seqused_out, seqused_kv,
            offsets2, rope_position2, query_row2, slot2, batch, rows, least_kv,
            ratio2, pages2, page_size2, pad_slot2, capacity2, CHUNK, TILE, False,
        )  # fmt: skip


def compressor_layout(
    cu_seqlens: Tensor,
    seqused: Tensor,
    start_pos: Tensor,
    rows: int,
    clamp_seqused_kv: bool,
    ratio: int,
    page_table: Tensor,
    page_size: int,
    pad_slot: int,
    ratio2: int,
    page_table2: Tensor | None,
    page_size2: int,
    pad_slot2: int,
    *outputs: Tensor,
) -> None:
    batch = seqused.shape[0]
    capacity = outputs[5].shape[0]
    pages2, capacity2 = (0, 0) if page_table2 is None else (page_table2.shape[1], outputs[9].shape[0])
    tensors = (contiguous(t) for t in (cu_seqlens, seqused, start_pos, page_table, page_table2))
    _compressor_layout_kernel[(1 + cdiv(max(capacity, capacity2), PLACES), 1 if page_table2 is None else 2)](
        *tensors, *outputs, batch, rows, int(clamp_seqused_kv),
        ratio, page_table.shape[1], page_size, pad_slot, capacity, ratio2, pages2, page_size2, pad_slot2, capacity2,
        CHUNK=chunk(batch), TILE=PLACES,
    )  # fmt: skip
