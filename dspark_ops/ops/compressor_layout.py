"""`compressor_layout`: compressed KV entries that a verify step completes (DESIGN 3.7, DeepSeek-V4 C4 and C128)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.compressor_layout import compressor_layout as reference

_MAX = (1 << 31) - 1


class CompressorTable(NamedTuple):
    """Where one ratio keeps its compressed entries."""

    ratio: int  # r: tokens per entry, 4 for C4 and 128 for C128
    page_table: Tensor  # int32 or int64 [B, pages]: page ids; a negative one is no page
    page_size: int  # entries per page
    pad_slot: int = -1  # slot of entries that have no page, and of padding (-1 in vLLM-Ascend, 0 in SGLang)
    slot_dtype: torch.dtype | None = None  # int32 or int64; the page table's if None


class CompressorEntries(NamedTuple):
    """The entries of one ratio: dense, in request order, C = min(R, floor(R / r) + B) places."""

    offsets: Tensor  # int32[B + 1]: request i completes entries offsets[i] .. offsets[i + 1] - 1
    rope_position: Tensor  # int64[C]: position of the entry's first token, 0 on padding
    query_row: Tensor  # int32[C]: row of the token that completes it, -1 on padding
    slot: Tensor  # int32 or int64 [C]: where it is stored, the pad slot on padding


class CompressorLayout(NamedTuple):
    """Lengths per request, and the entries of each table in the order given."""

    start_pos: Tensor  # int32[B]
    seqused: Tensor  # int32[B]
    seqused_kv: Tensor  # int32[B]
    entries: tuple[CompressorEntries, ...]


def _capacity(rows: int, ratio: int, batch: int) -> int:
    by_ratio = rows // ratio + batch
    return rows if rows < by_ratio else by_ratio


def _check_table(name: str, batch: int, device: torch.device, ratio: int, page_table: Tensor, page_size: int) -> None:
    _checks.integer(f"{name}.ratio", ratio, 1, 1 << 20)
    _checks.tensor(f"{name}.page_table", page_table, _checks.INDEX_DTYPES, [batch, "pages"], device)
    _checks.integer(f"{name}.page_size", page_size, 1, _MAX)


def _check_entries(
    name: str,
    batch: int,
    capacity: int,
    device: torch.device,
    pad_slot: int,
    offsets: Tensor,
    rope_position: Tensor,
    query_row: Tensor,
    slot: Tensor,
) -> None:
    _checks.output(f"{name}.offsets", offsets, torch.int32, [batch + 1], device)
    _checks.output(f"{name}.rope_position", rope_position, torch.int64, [capacity], device)
    _checks.output(f"{name}.query_row", query_row, torch.int32, [capacity], device)
    _checks.output(f"{name}.slot", slot, _checks.INDEX_DTYPES, [capacity], device)
    limits = torch.iinfo(slot.dtype)
    _checks.integer("pad_slot", pad_slot, limits.min, limits.max)


def _check(
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
    start_pos_out: Tensor,
    seqused_out: Tensor,
    seqused_kv: Tensor,
    offsets: Tensor,
    rope_position: Tensor,
    query_row: Tensor,
    slot: Tensor,
    offsets2: Tensor | None,
    rope_position2: Tensor | None,
    query_row2: Tensor | None,
    slot2: Tensor | None,
) -> None:
    _checks.tensor("seqused", seqused, torch.int32, ["B"])
    batch, device = seqused.shape[0], seqused.device
    _checks.tensor("cu_seqlens", cu_seqlens, torch.int32, [batch + 1], device)
    _checks.tensor("start_pos", start_pos, _checks.INDEX_DTYPES, [batch], device)
    _checks.integer("rows", rows, 0, _MAX)
    for name, t in (("start_pos", start_pos_out), ("seqused", seqused_out), ("seqused_kv", seqused_kv)):
        _checks.output(f"out.{name}", t, torch.int32, [batch], device)

    _check_table("tables[0]", batch, device, ratio, page_table, page_size)
    capacity = _capacity(rows, ratio, batch)
    _check_entries("out.entries[0]", batch, capacity, device, pad_slot, offsets, rope_position, query_row, slot)
    if page_table2 is None:
        return
    if offsets2 is None or rope_position2 is None or query_row2 is None or slot2 is None:
        raise ValueError("out.entries: expected one per table, got one for two tables")
    _check_table("tables[1]", batch, device, ratio2, page_table2, page_size2)
    capacity = _capacity(rows, ratio2, batch)
    _check_entries("out.entries[1]", batch, capacity, device, pad_slot2, offsets2, rope_position2, query_row2, slot2)


_op = operator(
    "compressor_layout(Tensor cu_seqlens, Tensor seqused, Tensor start_pos, int rows, bool clamp_seqused_kv, "
    "int ratio, Tensor page_table, int page_size, int pad_slot, "
    "int ratio2, Tensor? page_table2, int page_size2, int pad_slot2, "
    "Tensor(a!) start_pos_out, Tensor(b!) seqused_out, Tensor(c!) seqused_kv, "
    "Tensor(d!) offsets, Tensor(e!) rope_position, Tensor(f!) query_row, Tensor(g!) slot, "
    "Tensor(h!)? offsets2, Tensor(i!)? rope_position2, Tensor(j!)? query_row2, Tensor(k!)? slot2) -> ()",
    reference,
    _check,
)


def _allocate(seqused: Tensor, rows: int, tables: Sequence[CompressorTable]) -> CompressorLayout:
    def new(size: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.empty(size, dtype=dtype, device=seqused.device)

    batch = seqused.numel()
    entries = []
    for table in tables:
        capacity = _capacity(rows, table.ratio, batch)
        slot = new(capacity, table.slot_dtype or table.page_table.dtype)
        entries.append(CompressorEntries(new(batch + 1), new(capacity, torch.int64), new(capacity), slot))
    return CompressorLayout(new(batch), new(batch), new(batch), tuple(entries))


def prepare(
    cu_seqlens: Tensor,
    seqused: Tensor,
    start_pos: Tensor,
    rows: int,
    tables: Sequence[CompressorTable],
    clamp_seqused_kv: bool,
    out: CompressorLayout | None,
) -> tuple[CompressorLayout, tuple[Any, ...]]:
    """The result, allocated if need be, and the operator's arguments."""
    _checks.tensor("seqused", seqused, torch.int32, ["B"])
    _checks.integer("rows", rows, 0, _MAX)
    if not 1 <= len(tables) <= 2:
        raise ValueError(f"tables: expected one or two, got {len(tables)}")
    for k, table in enumerate(tables):
        if table.slot_dtype not in (None, *_checks.INDEX_DTYPES):
            raise TypeError(f"tables[{k}].slot_dtype: expected torch.int32 or torch.int64, got {table.slot_dtype}")
        if out is None:
            _check_table(f"tables[{k}]", seqused.shape[0], seqused.device, *table[:3])
    if out is None:
        out = _allocate(seqused, rows, tables)
    _checks.result("out", out, CompressorLayout)
    if len(out.entries) != len(tables):
        raise ValueError(f"out.entries: expected one per table ({len(tables)}), got {len(out.entries)}")
    for k, (table, entries) in enumerate(zip(tables, out.entries, strict=True)):
        if table.slot_dtype not in (None, entries.slot.dtype):
            raise TypeError(f"out.entries[{k}].slot: expected dtype {table.slot_dtype}, got {entries.slot.dtype}")
    arguments: list[object] = []
    for table in tables:
        arguments += [table.ratio, table.page_table, table.page_size, table.pad_slot]
    if len(tables) == 1:
        arguments += [1, None, 1, 0]
    outputs = [*out[:3], *out.entries[0], *(out.entries[1] if len(tables) == 2 else (None,) * 4)]
    return out, (cu_seqlens, seqused, start_pos, rows, clamp_seqused_kv, *arguments, *outputs)


def compressor_layout(
    cu_seqlens: Tensor,
    seqused: Tensor,
    start_pos: Tensor,
    rows: int,
    tables: Sequence[CompressorTable],
    *,
    clamp_seqused_kv: bool = False,
    out: CompressorLayout | None = None,
) -> CompressorLayout:
    """Compressed entries of one or two ratios that the tokens of a verify step complete.

    An entry of ratio r is complete when the length reaches a multiple of r, so request i completes
    ``n_i = floor((s_i + u_i) / r) - floor(s_i / r)`` of them, at ``offsets`` = exclusive cumulative sum of n. Place
    ``offsets[i] + j`` holds entry number ``e = floor(s_i / r) + j``:
    ``rope_position = e·r``, ``query_row = cu_seqlens[i] + (e + 1)·r - 1 - s_i`` and
    ``slot = page_table[i, e // page_size]·page_size + e % page_size``.
    ``seqused_kv = s + u``, at least 1 with `clamp_seqused_kv`.

    The pad slot stands for a page outside the table, a negative page id, and a slot that its dtype cannot hold. A place
    without an entry, or whose query_row is outside [0, R), is padding: rope_position 0, query_row -1, the pad slot.

    Args:
        cu_seqlens: int32 [B + 1]: rows each request owns, padding requests included.
        seqused: u, int32 [B]: rows of them that hold real tokens, 0 for padding and idle requests.
        start_pos: s, int32 or int64 [B]: tokens before this step. s and u are clamped to [0, 2^31 - 1].
        rows: R, the row capacity; a ratio has C = min(R, floor(R / r) + B) places.
        tables: one or two `CompressorTable`.
        clamp_seqused_kv: make seqused_kv at least 1, as attention in a captured graph needs it.
        out: `CompressorLayout` to write into, such as an earlier result.

    Returns:
        `CompressorLayout`; ``entries[k]`` belongs to ``tables[k]``. Offsets saturate at 2^31 - 1.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Capture: rows, ratios, page sizes and pad slots are fixed; every tensor may change on replay.

    Source: the compressor metadata of DeepSeek-V4 serving on Ascend, from a uniform to a ragged number of rows.
    """
    out, arguments = prepare(cu_seqlens, seqused, start_pos, rows, tables, clamp_seqused_kv, out)
    _op(*arguments)
    return out
