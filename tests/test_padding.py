"""A whole padded step against a walk that appends tokens one by one, both ratios at once; padding reaches nothing.

Padding requests carry what a captured graph's buffers hold: the tables, slots and positions of requests that are live.
What they would write, were they taken for real, would land in those requests' pages and state.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import dspark_ops
from conftest import cases_for
from dspark_ops import CompressorTable, compressor_layout, pad_to_bucket, ragged_layout, state_blocks, state_rows

WIDTH, DUMMY, PAD = 9, -7, -1
RATIOS = {4: 2, 128: 1}  # and coff
RINGS, SWA_PAGE, PAGE, BLOCK, CONTEXT = {4: 16, 128: 256}, 32, 8, 16, 400
Entry = tuple[int, int, int]


class Step(NamedTuple):
    real: int  # requests before the padding ones
    rows: int
    lens: list[int]
    start: list[int]
    slot: list[int]
    pages: dict[int, list[list[int]]]
    blocks: list[list[int]]
    to_token: list[list[int]]
    to_swa: list[int]

    @property
    def slots(self) -> int:
        return len(self.start)


class Built(NamedTuple):
    """What the operators give for a step, as lists."""

    owned: list[int]
    used: list[int]
    position: list[int]
    request: list[int]
    entries: dict[int, list[Entry]]
    rows: dict[int, list[list[int]]]
    blocks: dict[int, list[list[int]]]


def random_step(rng: Random) -> Step:
    real, padding = rng.randint(1, 5), rng.choice([0, 1, 3])
    live = list(range(real))
    lens = [rng.choice([0, 1, WIDTH, rng.randint(1, WIDTH)]) for _ in live]
    start = [rng.choice([0, 1, 3, 4, 127, 128, rng.randint(0, 300), rng.randint(118, 128)]) for _ in live]
    pages = {r: [[100 * i + rng.randint(0, 99) for _ in range(CONTEXT // r // PAGE + 1)] for i in live] for r in RATIOS}
    blocks = [[1000 * (i + 1) + b for b in range(CONTEXT // BLOCK)] for i in live]
    to_token = [[i * CONTEXT + t for t in range(CONTEXT)] for i in live]
    taken = rng.sample(range(400), real * CONTEXT // SWA_PAGE + 1)
    to_swa = [taken[t // SWA_PAGE] * SWA_PAGE + t % SWA_PAGE for t in range(real * CONTEXT)]
    stale = [rng.choice(live) for _ in range(padding)]
    total = sum(lens)
    rows = rng.choice([total, total + rng.randint(0, padding * WIDTH), max(total - rng.randint(0, 9), 0)])
    by_request = {r: p + [p[i] for i in stale] for r, p in pages.items()}
    return Step(
        real, rows, lens, start + [start[i] for i in stale], live + stale, by_request,
        blocks + [blocks[i] for i in stale], to_token, to_swa,
    )  # fmt: skip


def i32(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def build(step: Step, seqused: Tensor | None = None) -> Built:
    """Runs the operators; `seqused` replaces the true one."""
    padded = pad_to_bucket(i32(step.lens), step.rows, step.slots, cap=WIDTH)
    used = padded.seqused if seqused is None else seqused
    start, slot = torch.tensor(step.start), i32(step.slot)
    layout = ragged_layout(padded.padded, step.rows, prefix=start)
    tables = [CompressorTable(r, i32(step.pages[r]), PAGE, PAD) for r in RATIOS]
    entries = compressor_layout(layout.cu_seqlens, used, start, step.rows, tables).entries
    maps: dict[int, dict[str, Any]] = {128: {}}
    maps[4] = {"req_to_token": i32(step.to_token), "full_to_swa": i32(step.to_swa), "swa_page": SWA_PAGE}
    rows, blocks = {}, {}
    for r, coff in RATIOS.items():
        args = layout.cu_seqlens, used, start, slot, r, coff, RINGS[r], WIDTH, DUMMY
        rows[r] = state_rows(*args, **maps[r]).tolist()
        blocks[r] = state_blocks(i32(step.blocks), used, start, r, coff, BLOCK).tolist()
    assert layout.position is not None
    triples = [list(zip(e.rope_position.tolist(), e.query_row.tolist(), e.slot.tolist(), strict=True)) for e in entries]
    return Built(
        padded.padded.tolist(), used.tolist(), layout.position.tolist(), layout.row_request.tolist(),
        dict(zip(RATIOS, triples, strict=True)), rows, blocks,
    )  # fmt: skip


def row_of(step: Step, i: int, position: int, ratio: int) -> int:
    if ratio == 128:
        return step.slot[i] * RINGS[128] + position % RINGS[128]
    w = step.to_swa[step.to_token[step.slot[i]][position]]
    return w // SWA_PAGE * RINGS[4] + w % RINGS[4]


def walk(step: Step, owned: list[int], used: list[int]) -> Built:
    """The same step, token by token."""
    position, request = [0] * step.rows, [-1] * step.rows
    entries: dict[int, list[Entry]] = {r: [] for r in RATIOS}
    rows: dict[int, list[list[int]]] = {r: [] for r in RATIOS}
    blocks: dict[int, list[list[int]]] = {r: [] for r in RATIOS}
    row = 0
    for i, start in enumerate(step.start):
        needed: dict[int, set[int]] = {r: set() for r in RATIOS}
        for k in range(owned[i]):
            if row < step.rows:
                position[row], request[row] = start + k, i
            for r, coff in RATIOS.items():
                if k >= used[i]:
                    continue
                first = max(0, ((start + k) // r - (coff - 1)) * r)
                needed[r] |= {p // BLOCK for p in range(first, start + k + 1)}
                entry, rest = divmod(start + k + 1, r)
                if rest == 0:
                    slot = step.pages[r][i][(entry - 1) // PAGE] * PAGE + (entry - 1) % PAGE
                    entries[r].append(((entry - 1) * r, row, slot) if row < step.rows else (0, -1, PAD))
            row += 1
        for r, coff in RATIOS.items():
            columns = [DUMMY] * (coff * r + WIDTH)
            for c in range(coff * r + owned[i]):
                if used[i] and start - coff * r + c >= 0:
                    columns[c] = row_of(step, i, start - coff * r + c, r)
            rows[r].append(columns)
            blocks[r].append([b if p in needed[r] else 0 for p, b in enumerate(step.blocks[i])])
    for r in RATIOS:
        capacity = min(step.rows, step.rows // r + step.slots)
        entries[r] = (entries[r] + [(0, -1, PAD)] * capacity)[:capacity]
    return Built(owned, used, position, request, entries, rows, blocks)


def check_reach(step: Step, built: Built) -> None:
    """No entry and no state of a padding request; of a real one, entries of its real tokens only."""
    before = [sum(built.owned[:i]) for i in range(step.slots)]
    for r in RATIOS:
        for _, row, slot in built.entries[r]:
            if row < 0:
                assert slot == PAD
                continue
            i = built.request[row]
            assert i < step.real and row - before[i] < step.lens[i], "a padding row completes an entry"
        for i in range(step.real, step.slots):
            assert set(built.rows[r][i]) == {DUMMY}, "a padding request has state rows"
            assert set(built.blocks[r][i]) == {0}, "a padding request has state blocks"


def test_a_step_token_by_token(backend: str) -> None:
    rng = Random(7)
    for _ in range(cases_for(backend, 40)):
        step = random_step(rng)
        with dspark_ops.use_backend(backend):
            built = build(step)
        assert built.used == step.lens + [0] * (step.slots - step.real)
        assert built.owned[: step.real - 1] == step.lens[:-1]
        assert built == walk(step, built.owned, built.used)
        check_reach(step, built)


def test_padding_taken_for_real_would_reach_live_pages() -> None:
    """The check sees the fault: with the padded lengths for real ones, a padding request's entry has a live slot."""
    step = random_step(Random(0))._replace(real=1, rows=9, lens=[1], start=[3, 126], slot=[0, 0])
    step = step._replace(pages={r: p[:1] * 2 for r, p in step.pages.items()}, blocks=step.blocks[:1] * 2)
    with dspark_ops.use_backend("reference"):
        check_reach(step, build(step))
        wrong = build(step, i32([1, 8]))
    with pytest.raises(AssertionError, match="completes an entry"):
        check_reach(step, wrong)
    live = {slot for _, row, slot in wrong.entries[128] if row > 0}
    assert live == {step.pages[128][0][0] * PAGE}
    no_entries = wrong._replace(entries={r: [] for r in RATIOS})
    with pytest.raises(AssertionError, match="has state rows"):
        check_reach(step, no_entries)
