"""`ascend_verify_metadata`: every field from a walk over tokens, its launches, its buffers, what padding may touch."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import dspark_ops
from dspark_ops import (
    AscendTable,
    AscendVerifyMetadata,
    CompressorTable,
    PaddedLens,
    StateBlocks,
    StateRing,
    _backends,
    ascend_check,
    ascend_verify_metadata,
    capture_lens,
    compressor_layout,
)

PAGE, BLOCK, DUMMY = 4, 16, 999_999
RING = {4: 16, 128: 256}


def i32(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def tables(owner: list[int], pad_slot: int = 0) -> list[AscendTable]:
    """C4 and C128 with both state forms; request i has the pages, blocks and state slot of owner[i]."""
    made = []
    for ratio, coff in ((4, 2), (128, 1)):
        pages = i32([[1 + 100 * o + p for p in range(64)] for o in owner]).reshape(len(owner), 64)
        blocks = i32([[1 + 200 * o + b for b in range(40)] for o in owner]).reshape(len(owner), 40)
        ring = StateRing(torch.tensor(owner, dtype=torch.int64), RING[ratio], DUMMY)
        made.append(AscendTable(CompressorTable(ratio, pages, PAGE, pad_slot), coff, ring, StateBlocks(blocks, BLOCK)))
    return made


def walk(used: list[int], owned: list[int], start: list[int], width: int, table: AscendTable) -> dict[str, Any]:
    """Entries and state tables, token by token."""
    r, window = table.entries.ratio, table.coff * table.entries.ratio
    entries, rows, blocks = [], [], []
    for i, (u, s) in enumerate(zip(used, start, strict=True)):
        for k in range(u):
            if (s + k + 1) % r == 0:
                e = (s + k) // r
                slot = int(table.entries.page_table[i, e // PAGE]) * PAGE + e % PAGE
                entries.append((e * r, sum(owned[:i]) + k, slot))
        reach = range(s - window, s + owned[i]) if u else ()
        at = {p - s + window: int(table.ring.request_slot[i]) * table.ring.ring + p % table.ring.ring for p in reach}
        rows.append([at[c] if c in at and c + s >= window else DUMMY for c in range(window + width)])
        touched = {
            p // BLOCK for t in range(s, s + u) for p in range(max(0, (t // r - table.coff + 1) * r), t + 1)
        }  # fmt: skip
        blocks.append([b if p in touched else 0 for p, b in enumerate(table.blocks.block_table[i].tolist())])
    return {"entries": entries, "rows": rows, "blocks": blocks}


def check(
    meta: AscendVerifyMetadata, wanted: list[AscendTable], used: Any, owned: Any, start: Any, graph: bool
) -> None:
    offsets = [sum(owned[:i]) for i in range(len(owned) + 1)]
    assert meta.actual_seq_lengths_q_pa.tolist() == offsets
    assert meta.actual_seq_lengths_q.tolist() == offsets[1:]
    assert meta.actual_seq_lengths_q.storage_offset() == 0
    kv = [max(s + u, 1 if graph else 0) for s, u in zip(start, used, strict=True)]
    assert meta.actual_seq_lengths_kv.tolist() == kv
    assert (meta.start_pos.tolist(), meta.seqused.tolist()) == (start, used)
    width = meta.max_seqlen_q
    for k, table in enumerate(wanted):
        want, got = walk(used, owned, start, width, table), meta.compressor.entries[k]
        padding = [(0, -1, table.entries.pad_slot)] * (got.slot.numel() - len(want["entries"]))
        columns = got.rope_position.tolist(), got.query_row.tolist(), got.slot.tolist()
        assert list(zip(*columns, strict=True)) == want["entries"] + padding
        assert got.slot.dtype is (torch.int64 if graph else torch.int32)
        assert meta.state_rows[k].tolist() == want["rows"]
        assert meta.state_blocks[k].tolist() == want["blocks"]
    assert meta.host.actual_seq_lengths_q_pa.tolist() == offsets
    assert meta.host.actual_seq_lengths_kv.tolist() == kv


def share(rows: int, lens: list[int], slots: int, width: int) -> list[int]:
    """Owned rows: the slack dealt out to padding requests, at most the width each."""
    padding, slack = slots - len(lens), rows - sum(lens)
    return lens + [min(width, slack // padding + (j < slack % padding)) for j in range(padding)]


def test_token_walk_eager_and_graph(backend: str) -> None:
    rng = Random(5)
    for _ in range(40):
        graph, width, batch = rng.random() < 0.6, rng.choice([1, 4, 8]), rng.randint(0, 5)
        slots = batch + rng.choice([0, 1, 3]) if graph else batch
        lens = [rng.randint(0, width) for _ in range(batch)]
        start = [rng.choice([0, 3, 4, 125, 127, 128, rng.randint(0, 500)]) for _ in range(batch)] + [0] * (
            slots - batch
        )
        rows = sum(lens) + (rng.choice([0, 1, 2 * width]) if graph else 0)
        owner = list(range(slots))
        host = {"host_verify_lens": i32(lens), "host_start_pos": torch.tensor(start, dtype=torch.int64)}
        with dspark_ops.use_backend(backend):
            meta = ascend_verify_metadata(
                i32(lens), torch.tensor(start, dtype=torch.int64), rows, width, tables(owner), graph=graph,
                num_slots=slots if graph else None, **host,
            )  # fmt: skip
        used = lens + [0] * (slots - batch)
        check(meta, tables(owner), used, share(rows, lens, slots, width), start, graph)


@pytest.mark.parametrize("graph", [False, True])
def test_host_lengths_are_the_device_s(graph: bool) -> None:
    """Row ownership that is given, and values past every range."""
    top = (1 << 31) - 1
    start = torch.tensor([5, top - 1, 1 << 40, -3])
    for lens in (PaddedLens(i32([2, 3, 4, 2]), i32([2, 3, 0, 2])), i32([top, top, -5, 0])):
        meta = ascend_verify_metadata(
            lens, start, 8, 4, tables([0, 1, 2, 3]), graph=graph, host_verify_lens=lens, host_start_pos=start
        )
        assert meta.host is not None
        assert meta.host.actual_seq_lengths_q_pa.tolist() == meta.actual_seq_lengths_q_pa.tolist()
        assert meta.host.actual_seq_lengths_kv.tolist() == meta.actual_seq_lengths_kv.tolist()


def test_given_row_ownership_and_tokens(backend: str) -> None:
    """What a capture feeds: lengths spread over the slots, nothing of them padding."""
    owned = capture_lens(7, 3, 4)
    tokens = {"root_tokens": torch.tensor([10, 20, 30]), "draft_tokens": torch.arange(9).reshape(3, 3)}
    with dspark_ops.use_backend(backend):
        meta = ascend_verify_metadata(PaddedLens(owned, owned), i32([4, 5, 6]), 8, 4, tables([0, 1, 2]), **tokens)
    assert meta.actual_seq_lengths_q.tolist() == [3, 5, 7]
    assert meta.layout.verify_ids.tolist() == [10, 0, 1, 20, 3, 30, 6, 0]
    assert meta.layout.position.tolist() == [4, 5, 6, 5, 6, 6, 7, 0]
    assert meta.scratch is None and meta.host is None


class Calls(TorchDispatchMode):
    """Names of the operators that run and are more than a view or an allocation."""

    FREE = ("slice", "empty", "empty_like", "new_empty", "alias", "detach")

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__.partition(".")[0]
        if name not in self.FREE:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def test_launches() -> None:
    both, one, two, start = tables([0, 1]), i32([1]), i32([1, 2]), i32([3, 0])
    rings = [t._replace(blocks=None) for t in both]
    eager = ["ragged_layout", "copy_", "compressor_layout", "state_rows", "state_rows"]
    with Calls() as calls:
        ascend_verify_metadata(two, start, 3, 4, rings)
    assert calls.names == eager
    with Calls() as calls:
        ascend_verify_metadata(one, start, 3, 4, rings, num_slots=2, graph=True)
    assert calls.names == ["pad_to_bucket", *eager]
    with Calls() as calls:
        ascend_verify_metadata(one, start, 3, 4, both, num_slots=2, graph=True)
    assert sorted(calls.names) == sorted(["pad_to_bucket", *eager, "state_blocks", "state_blocks"])


def leaves(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in leaves(part)] if isinstance(value, tuple) else []


def test_replay_keeps_addresses_and_inputs_whatever_the_batch(backend: str) -> None:
    arguments: Any = (7, 4, tables([0, 1, 2]))
    kept: list[torch.Tensor] = []
    meta = None
    for lens in ([2, 1], [], [4, 1, 2], [3]):
        given = i32(lens)
        with dspark_ops.use_backend(backend):
            start = torch.tensor([9] * len(lens) + [0] * (3 - len(lens)))
            meta = ascend_verify_metadata(given, start, *arguments, num_slots=3, graph=True, out=meta)
        assert given.tolist() == lens  # the buffers for padded lengths are never the caller's
        assert meta.seqused.tolist() == lens + [0] * (3 - len(lens))
        kept = kept or leaves(meta)
        assert [t.data_ptr() for t in leaves(meta)] == [t.data_ptr() for t in kept]


@pytest.mark.parametrize("pad_slot", [0, -1])
def test_padding_reaches_no_page_and_no_state_row(pad_slot: int, backend: str) -> None:
    """Stale inputs are the worst case: padding and idle requests with the pages, blocks, slots and starts of others."""
    rng = Random(pad_slot)
    for _ in range(40):
        real, padding, width = rng.randint(0, 4), rng.randint(1, 4), rng.choice([2, 8])
        idle = [rng.random() < 0.3 for _ in range(real)]
        lens = [0 if off else rng.randint(1, width) for off in idle]
        owner = [*range(real), *(rng.randrange(max(real, 1)) for _ in range(padding))]
        start = [rng.choice([3, 7, 127, 255, rng.randint(0, 300)]) for _ in owner]
        rows = sum(lens) + rng.choice([0, 1, padding * width])
        wanted = tables(owner, pad_slot)
        with dspark_ops.use_backend(backend):
            meta = ascend_verify_metadata(
                i32(lens), i32(start), rows, width, wanted, num_slots=len(owner), graph=True
            )  # fmt: skip
            kv = CompressorTable(1, wanted[0].blocks.block_table, BLOCK, pad_slot)  # where the rows' own KV goes
            row_slot = (
                compressor_layout(meta.actual_seq_lengths_q_pa, meta.seqused, i32(start), rows, [kv]).entries[0].slot
            )
        active = {o for o, n in zip(owner, lens, strict=False) if n}
        for table, found, by_row, by_block in zip(
            wanted, meta.compressor.entries, meta.state_rows, meta.state_blocks, strict=True
        ):
            pages = {n // PAGE for n in found.slot.tolist() if n != pad_slot}
            assert {(p - 1) // 100 for p in pages} <= active
            for i, (rows_of, blocks_of) in enumerate(zip(by_row.tolist(), by_block.tolist(), strict=True)):
                mine = i < real and not idle[i]
                assert {n // table.ring.ring for n in rows_of if n != DUMMY} == ({owner[i]} if mine else set())
                assert {(b - 1) // 200 for b in blocks_of if b} == ({owner[i]} if mine else set())
        written = [n for n in row_slot.tolist() if n != pad_slot]
        assert len(written) == len(set(written)) == sum(lens)
        assert {(n // BLOCK - 1) // 200 for n in written} == active


@pytest.mark.full
def test_compiles() -> None:
    compiled = torch.compile(ascend_verify_metadata, fullgraph=True, backend="aot_eager")
    meta = compiled(i32([2, 3]), i32([3, 127, 0]), 8, 4, tables([0, 1, 2]), num_slots=3, graph=True)
    assert meta.actual_seq_lengths_kv.tolist() == [5, 130, 1]
    assert meta.compressor.entries[0].rope_position.tolist() == [0, 124, 0, 0, 0]


GOOD: dict[str, Any] = {"verify_lens": i32([1, 2]), "start_pos": i32([3, 4]), "rows": 4, "width": 4}


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"verify_lens": torch.tensor([1, 2])}, TypeError, "verify_lens: expected dtype torch.int32, got torch.int64"),
        ({"start_pos": i32([1])}, ValueError, r"start_pos: expected shape \[2\], got \[1\]"),
        ({"rows": -1}, ValueError, "rows: expected an int"),
        ({"width": 0}, ValueError, "width: expected an int"),
        ({"num_slots": 1}, ValueError, "num_slots: expected an int"),
        ({"tables": []}, ValueError, "tables: expected one or two, got 0"),
        ({"tables": [1]}, TypeError, r"tables\[0\]: expected an AscendTable, got int"),
        ({"tables": tables([0])}, ValueError, "page_table: expected shape"),
        ({"host_verify_lens": i32([1, 2])}, ValueError, "host_verify_lens, host_start_pos: expected both or neither"),
        ({"out": 3}, TypeError, "out: expected a AscendVerifyMetadata, got int"),
    ],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ascend_verify_metadata(**GOOD | {"tables": tables([0, 1])} | change)


def test_a_workspace_of_another_size_is_refused() -> None:
    small = ascend_verify_metadata(**GOOD, tables=tables([0, 1]))
    with pytest.raises(ValueError, match=r"out.row_request: expected shape \[5\], got \[4\]"):
        ascend_verify_metadata(**GOOD | {"rows": 5}, tables=tables([0, 1]), out=small)
    with pytest.raises(ValueError, match=r"out.state_rows: expected one per table \(1\), got 2"):
        ascend_verify_metadata(**GOOD, tables=tables([0, 1])[:1], out=small)
    with pytest.raises(ValueError, match=r"host_verify_lens: expected shape \[2\], got \[1\]"):
        host = {"host_verify_lens": i32([1]), "host_start_pos": i32([1, 2])}
        ascend_verify_metadata(**GOOD | {"num_slots": 2}, tables=tables([0, 1]), **host)
    with pytest.raises(TypeError, match="host_verify_lens: expected PaddedLens, as verify_lens is, got Tensor"):
        host = {"host_verify_lens": i32([1, 2]), "host_start_pos": i32([1, 2])}
        ascend_verify_metadata(
            **GOOD | {"verify_lens": PaddedLens(i32([1, 2]), i32([1, 2]))}, tables=tables([0, 1]), **host
        )
    with pytest.raises(ValueError, match=r"host_start_pos: expected shape \[2\], got \[3\]"):
        host = {"host_verify_lens": i32([1, 2]), "host_start_pos": i32([1, 2, 3])}
        ascend_verify_metadata(**GOOD, tables=tables([0, 1]), **host)


def test_the_check_command_passes_and_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ascend_check.check_metadata(seconds=0.5).failures == []
    right = ascend_check.ascend_verify_metadata

    def wrong(*args: Any, out: Any = None, **options: Any) -> AscendVerifyMetadata:
        meta = right(*args, **options, out=out)
        if _backends.get_backend("reference").namespace != _backends.forced_namespace and meta.seqused.numel():
            meta.seqused[-1] += 1
        return meta

    monkeypatch.setattr(ascend_check, "ascend_verify_metadata", wrong)
    (failure,) = ascend_check.check_metadata(seconds=0).failures
    assert "metadata.compressor.seqused[" in failure
    with pytest.raises(ValueError, match="backend: expected one of"):
        ascend_check.check_metadata("none")
