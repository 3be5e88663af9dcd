"""`compressor_layout` against a simulation that appends tokens one by one."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

import dspark_ops
from dspark_ops import CompressorLayout, CompressorTable, compressor_layout

INT32_MAX = (1 << 31) - 1
Entry = tuple[int, int, int]  # rope position, query row, slot


def i32(values: list[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def simulate(owned: list[int], used: list[int], start: list[int], rows: int, table: CompressorTable) -> dict[str, Any]:
    """An entry completes whenever the length becomes a multiple of the ratio."""
    pages = table.page_table.tolist()
    padding: Entry = (0, -1, table.pad_slot)
    entries: list[Entry] = []
    offsets = [0]
    for i in range(len(used)):
        for k in range(used[i]):
            length = start[i] + k + 1
            if length % table.ratio:
                continue
            row, entry = sum(owned[:i]) + k, length // table.ratio - 1
            page, within = divmod(entry, table.page_size)
            page_id = pages[i][page] if page < len(pages[i]) else -1
            slot = page_id * table.page_size + within if page_id >= 0 else table.pad_slot
            entries.append((entry * table.ratio, row, slot) if row < rows else padding)
        offsets.append(len(entries))
    capacity = min(rows, rows // table.ratio + len(used))
    if sum(owned) <= rows:
        assert len(entries) <= capacity
    entries = (entries + [padding] * capacity)[:capacity]
    rope, query, slots = (list(column) for column in zip(*entries, strict=True)) if entries else ([], [], [])
    return {"offsets": offsets, "rope_position": rope, "query_row": query, "slot": slots}


def cumulative(owned: list[int]) -> torch.Tensor:
    return i32([sum(owned[:i]) for i in range(len(owned) + 1)])


def tables(rng: Random, batch: int, longest: int) -> list[CompressorTable]:
    made = []
    for ratio, page_size in ((4, rng.choice([1, 3, 64])), (128, rng.choice([1, 2]))):
        pages = rng.choice([0, 1, longest // ratio // page_size + 2])
        ids = [[rng.choice([-1, rng.randint(0, 999), rng.randint(0, 999)]) for _ in range(pages)] for _ in range(batch)]
        page_table = torch.tensor(ids, dtype=rng.choice([torch.int32, torch.int64])).reshape(batch, pages)
        made.append(CompressorTable(ratio, page_table, page_size, rng.choice([-1, 0])))
    return rng.choice([made, made[::-1], made[:1], made[1:]])


def check(
    layout: CompressorLayout, wanted: list[CompressorTable], owned: Any, used: Any, start: Any, rows: int
) -> None:
    assert layout.start_pos.tolist() == start
    assert layout.seqused.tolist() == used
    assert len(layout.entries) == len(wanted)
    for entries, table in zip(layout.entries, wanted, strict=True):
        assert entries.slot.dtype is (table.slot_dtype or table.page_table.dtype)
        assert {k: v.tolist() for k, v in entries._asdict().items()} == simulate(owned, used, start, rows, table)


def test_simulation(backend: str) -> None:
    rng = Random(3)
    for _ in range(150):
        batch = rng.randint(0, 6)
        longest = rng.choice([8, 8, 300])
        owned = [rng.randint(0, longest) for _ in range(batch)]
        used = [rng.choice([0, n, rng.randint(0, n)]) for n in owned]
        start = [rng.choice([0, 3, 127, 128, rng.randint(0, 1000)]) for _ in range(batch)]
        rows = rng.choice([sum(owned), sum(owned) + 5, sum(owned) // 2, 0])
        wanted, clamp = tables(rng, batch, 1000 + longest), rng.random() < 0.5
        start_pos = torch.tensor(start, dtype=rng.choice([torch.int32, torch.int64]))
        with dspark_ops.use_backend(backend):
            got = compressor_layout(cumulative(owned), i32(used), start_pos, rows, wanted, clamp_seqused_kv=clamp)
        check(got, wanted, owned, used, start, rows)
        kv = [s + u for s, u in zip(start, used, strict=True)]
        assert got.seqused_kv.tolist() == ([max(n, 1) for n in kv] if clamp else kv)


def test_boundaries(backend: str) -> None:
    """Every start and length around the end of two entries."""
    pages = i32([list(range(10, 30))])
    with dspark_ops.use_backend(backend):
        for s in range(10):
            for u in range(10):
                table = CompressorTable(4, pages, 2, slot_dtype=torch.int64)
                got = compressor_layout(i32([0, u + 1]), i32([u]), i32([s]), 12, [table])
                check(got, [table], [u + 1], [u], [s], 12)


def test_values_outside_the_range(backend: str) -> None:
    """Saturated lengths, huge n, and row offsets that make no sense: nothing is read or written out of place."""
    table = CompressorTable(1, i32([[7]] * 4), 8)
    start = torch.tensor([1 << 40, -5, 0, 0])
    with dspark_ops.use_backend(backend):
        got = compressor_layout(i32([0, -3, 0, 2, 9]), i32([1, 4, INT32_MAX, -1]), start, 6, [table])
    assert got.start_pos.tolist() == [INT32_MAX, 0, 0, 0]
    assert got.seqused.tolist() == [1, 4, INT32_MAX, 0]
    assert got.seqused_kv.tolist() == [INT32_MAX, 4, INT32_MAX, 0]
    entries = got.entries[0]
    assert entries.offsets.tolist() == [0, 1, 5, INT32_MAX, INT32_MAX]
    # Request 0 completes an entry beyond its table; rows -3 to -1 of request 1 do not exist.
    assert entries.rope_position.tolist() == [INT32_MAX, 0, 0, 0, 3, 0]
    assert entries.query_row.tolist() == [0, -1, -1, -1, 0, 0]
    assert entries.slot.tolist() == [-1, -1, -1, -1, 59, 56]


def test_slot_that_does_not_fit_is_the_pad_slot(backend: str) -> None:
    # 2^31 - 1 = 3 * (2^31 // 3) + 1 and likewise for 2^63: the last page of each type holds two of its three slots.
    pages = torch.tensor([[0, (1 << 31) // 3, (1 << 31) // 3 + 1, (1 << 63) // 3, (1 << 63) - 1]])
    for dtype in (torch.int32, torch.int64):
        with dspark_ops.use_backend(backend):
            table = CompressorTable(1, pages, 3, -9, dtype)
            got = compressor_layout(i32([0, 15]), i32([15]), i32([0]), 15, [table]).entries[0].slot.tolist()
        slots = [int(pages[0, e // 3]) * 3 + e % 3 for e in range(15)]
        assert got == [n if n <= torch.iinfo(dtype).max else -9 for n in slots]


def test_out_keeps_addresses_and_strided_input(backend: str) -> None:
    wide = i32([[3, 9, 4, 9], [5, 9, 6, 9]])
    cu, used, start = i32([0, 4, 8]), i32([4, 9, 4])[::2], torch.tensor([0, 9, 4])[::2]
    table = CompressorTable(4, wide[:, ::2], 1, slot_dtype=torch.int64)
    with dspark_ops.use_backend(backend):
        first = compressor_layout(cu, used, start, 8, [table, table._replace(ratio=2)])
        second = compressor_layout(cu, used, start, 8, [table, table._replace(ratio=2)], out=first)
    assert second is first
    assert first.entries[0].slot.tolist() == [3, 6, -1, -1]
    assert first.entries[1].query_row.tolist() == [1, 3, 5, 7, -1, -1]


TABLE = CompressorTable(4, i32([[1]]), 8)


def test_compiles(backend: str) -> None:
    wanted = [TABLE, TABLE._replace(ratio=128)]
    with dspark_ops.use_backend(backend):
        compiled = torch.compile(compressor_layout, fullgraph=True, backend="aot_eager")
        got = compiled(i32([0, 2]), i32([1]), i32([127]), 4, wanted)
    check(got, wanted, [2], [1], [127], 4)
