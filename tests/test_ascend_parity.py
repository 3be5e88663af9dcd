"""Uniform lengths: `ascend_verify_metadata` gives the tensors of SGLang 0.5.23's fixed-width path, in either mode."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sglang_ascend import C128_PAGE, DUMMY, PAGE, RINGS, WINDOW_PAGE, World, wheel

import dspark_ops
from dspark_ops import AscendTable, AscendVerifyMetadata, CompressorTable, StateRing, ascend_verify_metadata
from dspark_ops.integrations.sglang_ascend import target_verify_fields

if wheel() is None:
    reason = "no wheel of sglang 0.5.23 (DSPARK_RIVAL_WHEEL, or run bench/run.py): nothing is compared with SGLang"
    pytest.skip(reason, allow_module_level=True)

STARTS = (1, 3, 4, 120, 127, 128, 255, 256, 500, 700)


def tables(world: World, fm: Any, request_slot: torch.Tensor) -> list[AscendTable]:
    """Ours, over the page tables that SGLang's back end has built for its attention."""
    c4 = CompressorTable(4, fm.c4_page_table, PAGE // 4, pad_slot=0)
    c128 = CompressorTable(128, fm.c128_page_table, C128_PAGE, pad_slot=0)
    paged = (world.req_to_token, world.full_to_swa, WINDOW_PAGE)
    rings = StateRing(request_slot, RINGS[4], DUMMY[4], *paged), StateRing(request_slot, RINGS[128], DUMMY[128])
    return [AscendTable(c4, 2, rings[0]), AscendTable(c128, 1, rings[1])]


def same(ours: AscendVerifyMetadata, fm: Any) -> None:
    """Values and dtypes of every field."""
    fields = target_verify_fields(ours)
    tables = fields.pop("dsv4_explicit_state_block_tables")
    capacity, ends = fields.pop("dsv4_max_input_capacity"), fields.pop("actual_seq_lengths_q")
    for name in ("actual_seq_lengths_q_pa_cpu", "seq_lens_cpu_int"):
        fields.pop(name, None)  # each test looks at these itself
    for name, got in fields.items():
        want = getattr(fm, name)
        assert got.dtype is want.dtype, name
        assert got.tolist() == want.tolist(), name
    # A graph keeps no offsets without the leading 0: the indexer's operator is given a copy.
    want = getattr(fm, "actual_seq_lengths_q", fm.actual_seq_lengths_q_pa[1:])
    assert ends.tolist() == want.tolist()
    for ratio, got in tables.items():
        want = fm.dsv4_explicit_state_block_tables[ratio]
        assert got is not None and torch.equal(got, want) and got.dtype is want.dtype
    assert capacity == fm.dsv4_max_input_capacity


def requests(rng: Random, slots: int) -> tuple[list[int], list[int]]:
    real = rng.randint(1, slots)
    return rng.sample(range(slots), real), [rng.choice(STARTS) + rng.choice([0, 0, 1, 2]) for _ in range(real)]


def addresses(value: Any) -> list[int]:
    if isinstance(value, torch.Tensor):
        return [value.data_ptr()]
    return [a for part in value for a in addresses(part)] if isinstance(value, tuple) else []


@pytest.mark.parametrize("width", [2, 5, 8])
def test_eager(width: int, backend: str) -> None:
    rng = Random(width)
    for _ in range(8):
        world = World(rng, 6, width)
        slot, start = requests(rng, 6)
        batch = world.batch(slot, start)
        fm = world.eager(batch)
        lens = torch.full([len(slot)], width, dtype=torch.int32)
        host = {"host_verify_lens": lens, "host_start_pos": torch.tensor(start)}
        with dspark_ops.use_backend(backend):
            ours = ascend_verify_metadata(
                lens, batch.seq_lens, len(slot) * width, width, tables(world, fm, batch.req_pool_indices), **host
            )
        same(ours, fm)
        assert ours.host is not None
        assert ours.host.actual_seq_lengths_q_pa.tolist() == fm.actual_seq_lengths_q_pa_cpu.tolist()
        assert ours.host.actual_seq_lengths_kv.tolist() == fm.seq_lens_cpu_int.tolist()
        assert ours.layout.position is not None
        assert ours.layout.position.tolist() == batch.positions.tolist()


@pytest.mark.parametrize("width", [2, 8])
def test_graph_replays(width: int, backend: str) -> None:
    """One set of buffers on either side, replayed with other requests, with and without padding ones, and idle."""
    rng = Random(width)
    slots = 5
    world = World(rng, slots, width)
    theirs, ours = world.backend(), None
    for step in range(12):
        slot, start = requests(rng, slots)
        idle = step in (4, 9)
        batch = world.batch(slot, start, slots - len(slot), idle)
        fm = world.replay(theirs, batch)
        live = torch.tensor([0 if idle else s for s in start] + [0] * (slots - len(slot)))
        lens = torch.full([0 if idle else len(slot)], width, dtype=torch.int32)
        host = SimpleNamespace(host_verify_lens=lens, host_start_pos=live).__dict__
        before = None if ours is None else addresses(ours[:5])
        arguments = (lens, live, slots * width, width, tables(world, fm, batch.req_pool_indices))
        with dspark_ops.use_backend(backend):
            ours = ascend_verify_metadata(*arguments, num_slots=slots, graph=True, **host, out=ours)
        same(ours, fm)
        assert before in (None, addresses(ours[:5]))
        assert ours.host is not None
        assert ours.host.actual_seq_lengths_q_pa.tolist() == fm.actual_seq_lengths_q_pa_cpu.tolist()
        assert ours.host.actual_seq_lengths_kv.tolist() == fm.actual_seq_lengths_kv.tolist()
        assert ours.host.max_seqlen_kv() == max(fm.actual_seq_lengths_kv.tolist())
