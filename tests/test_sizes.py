"""Sizes past every block, chunk, tile and grid axis of a device kernel: no back end has a hidden limit."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch

from dspark_ops.testing import compare, poison
from dspark_ops.testing.generate import ints


def cumulative(lens: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.zeros(1, dtype=torch.int32), lens.cumsum(0, dtype=torch.int32)])


# 1024 is where a search with a fixed number of steps ends; 2049 is past two chunks of 1024 requests.
@pytest.mark.parametrize("batch", [128, 129, 1024, 1025, 2049])
def test_layout(batch: int, backend: str) -> None:
    rng = Random(batch)
    lens, prefix = ints(rng, batch, 0, 8), ints(rng, batch, 0, 5000, torch.int64)
    rows = int(lens.sum()) + 3
    roots = ints(rng, batch, 0, 99, torch.int64)
    drafts = ints(rng, 7 * batch, 0, 99, torch.int64).reshape(batch, 7)
    outputs = [poison([batch + 1], torch.int32), *(poison([rows], torch.int32) for _ in range(2))]
    outputs += [poison([rows], torch.int64), poison([rows], torch.int64), poison([batch], torch.int32)]
    compare("ragged_layout", (lens, prefix, roots, drafts, *outputs, poison([batch + 1], torch.int32)), backend)
    for slots in (batch, batch + 1500):
        padded = (poison([slots], torch.int32), poison([slots], torch.int32))
        compare("pad_to_bucket", (lens, rows + 700, -1, *padded), backend)


def test_one_request_owns_many_tiles(backend: str) -> None:
    lens = torch.tensor([0, 3, 0, 2000, 0, 0, 5, 0], dtype=torch.int32)
    rows = 2300
    outputs = (poison([9], torch.int32), poison([rows], torch.int32), poison([rows], torch.int32))
    compare("ragged_layout", (lens, None, None, None, *outputs, None, None, None, None), backend)


@pytest.mark.parametrize("batch", [129, 1025, 2049])
def test_compressor(batch: int, backend: str) -> None:
    rng = Random(batch)
    lens, start = ints(rng, batch, 0, 8), ints(rng, batch, 0, 2000)
    rows = int(lens.sum())
    args: list[Any] = [cumulative(lens), lens, start, rows, True]
    outputs: list[torch.Tensor] = [poison([batch], torch.int32) for _ in range(3)]
    for ratio, pages in ((4, 64), (128, 8)):
        capacity = min(rows, rows // ratio + batch)
        args += [ratio, ints(rng, batch * pages, -1, 999).reshape(batch, pages), 8, -1]
        outputs += [poison([batch + 1], torch.int32), poison([capacity], torch.int64)]
        outputs += [poison([capacity], torch.int32), poison([capacity], torch.int64)]
    compare("compressor_layout", (*args, *outputs), backend)


@pytest.mark.parametrize("columns", [1, 2, 1023, 2048, 5000])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.int64])
def test_moves(columns: int, dtype: torch.dtype, backend: str) -> None:
    rng = Random(columns)
    lens = ints(rng, 12, 0, 4)
    cu = cumulative(lens)
    rows = int(cu[-1])
    compact = torch.frombuffer(bytearray(rng.randbytes(rows * columns * dtype.itemsize)), dtype=dtype)
    compact = compact.reshape(rows, columns)
    compare("scatter_to_strided", (compact, cu, 4, -1, poison([48, columns], dtype)), backend)
    strided = compact.repeat(9, 1)[:48]
    compare("gather_from_strided", (strided, cu, -1, poison([rows + 2, columns], dtype)), backend)


def test_moves_of_a_vocabulary(backend: str) -> None:
    cu = torch.tensor([0, 2, 3], dtype=torch.int32)
    compact = torch.arange(3 * 200_000).reshape(3, 200_000).to(torch.bfloat16)
    strided = poison([4, 200_000], torch.bfloat16)
    compare("scatter_to_strided", (compact, cu, 2, 0, strided), backend)
    compare("gather_from_strided", (strided, cu, 0, poison([3, 200_000], torch.bfloat16)), backend)


def test_moves_between_addresses_that_are_not_aligned(backend: str) -> None:
    rng = Random(7)
    cu = torch.tensor([0, 2, 2, 5], dtype=torch.int32)
    for at, to in ((1, 0), (0, 1), (2, 4), (8, 8), (4, 8)):
        source = torch.frombuffer(bytearray(rng.randbytes(5 * 48 + at)), dtype=torch.uint8)[at:].reshape(5, 48)
        compare("scatter_to_strided", (source, cu, 3, 7, poison([9 * 48 + to], torch.uint8)[to:].view(9, 48)), backend)


@pytest.mark.parametrize("batch", [1024, 1025, 3000])
def test_gather_finds_its_row_in_large_batches(batch: int, backend: str) -> None:
    rng = Random(batch)
    cu = cumulative(ints(rng, batch, 0, 2))
    strided = ints(rng, 2 * batch, 0, 99)
    compare("gather_from_strided", (strided, cu, -1, poison([int(cu[-1]) + 9], torch.int32)), backend)


@pytest.mark.parametrize(("batch", "gamma"), [(300, 7), (3, 511), (2, 512), (1, 1030)])
def test_acceptance(batch: int, gamma: int, backend: str) -> None:
    rng = Random(gamma)
    target = ints(rng, batch * (gamma + 1), 0, 9, torch.int64).reshape(batch, gamma + 1)
    draft = target[:, :gamma].clone()
    for r in range(batch):
        draft[r, rng.randrange(gamma)] = 10  # the first difference may lie in a later piece of the row
    lens = ints(rng, batch, gamma // 2, gamma + 1)
    confidence = torch.rand(batch, gamma, generator=torch.Generator().manual_seed(gamma))
    # The sum over drafts is a loop, which an interpreter takes its time for: long rows go without.
    offset = torch.full([batch], 0.5)
    learning = (confidence, None, 0.9, 0.3, 4.0, offset) if gamma < 512 else (None, None, 1.0, 0.1, 4.0, None)
    outputs = [poison([batch], torch.int32), poison([batch], torch.int32), poison([batch], torch.int64)]
    outputs += [poison([batch], torch.int32), poison([batch], torch.int32), poison([batch, gamma + 1], torch.int64)]
    prefix = ints(rng, batch, 0, 99)
    compare("accept_greedy", (draft, target, lens, prefix, None, *learning, *outputs), backend)
    raw = ints(rng, batch, 0, gamma)
    compare("finalize_accept", (raw, draft, lens, prefix, None, target, None, *learning, *outputs), backend)
    if gamma < 512:
        compare("update_offset", (confidence, raw, lens, None, 0.9, 0.3, 4.0, offset), backend)


def test_state_tables_wider_than_a_program(backend: str) -> None:
    start = torch.tensor([5, 5000, 100_000], dtype=torch.int32)
    used = torch.tensor([3, 1, 0], dtype=torch.int32)
    slots = torch.tensor([0, 4, 9])
    cu = torch.tensor([0, 3, 7, 9], dtype=torch.int32)
    compare(
        "state_rows",
        (cu, used, start, slots, None, None, 1000, 3, 4000, 0, -1, poison([3, 3016], torch.int32)),
        backend,
    )
    table = torch.arange(3 * 2500).reshape(3, 2500)
    compare("state_blocks", (table, used, start, 1000, 3, 2, poison([3, 2500], torch.int64)), backend)
