"""`state_rows` and `state_blocks` against a walk over positions, token by token."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch

import dspark_ops
from dspark_ops import state_blocks, state_rows

INT32_MAX = (1 << 31) - 1


def i32(values: list[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def at(values: Any, index: int) -> Any:
    """values[index], None outside (Python would count a negative index from the end)."""
    return values[index] if values is not None and 0 <= index < len(values) else None


def walk_rows(
    owned: int, used: int, start: int, slot: int, window: int, ring: int, width: int, maps: tuple[Any, Any, int] | None
) -> list[int]:
    """Rows of positions start - window, ...: the window before the step, then the step's own rows. Dummy row -7."""
    columns = []
    for position in range(start - window, start + min(owned, width)):
        row: int | None = None
        if used > 0 and position >= 0:
            if maps is None:
                row = slot * ring + position % ring if slot >= 0 else None
            else:
                token = at(at(maps[0], slot), position)
                w = None if token is None else at(maps[1], token)
                row = None if w is None or w < 0 else w // maps[2] * ring + w % ring
        columns.append(-7 if row is None or row > INT32_MAX else row)
    return columns + [-7] * (window + width - len(columns))


@pytest.mark.parametrize(("ratio", "coff", "ring", "paged"), [(128, 1, 256, False), (4, 2, 16, True), (3, 3, 10, True)])
def test_walk(ratio: int, coff: int, ring: int, paged: bool, backend: str) -> None:
    rng = Random(f"{ratio}/{paged}")
    for _ in range(60):
        batch, width = rng.randint(0, 5), rng.choice([1, 5, 16])
        owned = [rng.randint(0, width) for _ in range(batch)]
        used = [rng.choice([0, n]) for n in owned]
        start = [rng.choice([0, 1, ratio, rng.randint(0, 500), rng.randint(390, 402)]) for _ in range(batch)]
        slot = [rng.choice([-1, 0, 3, 4, 5, (1 << 31) // ring - 1]) for _ in range(batch)]
        maps = None
        arguments: dict[str, Any] = {}
        if paged:
            to_token = [[rng.randint(-1, 300) for _ in range(400)] for _ in range(5)]
            to_swa = [rng.choice([-1, rng.randint(0, 9999), INT32_MAX]) for _ in range(300)]
            maps = to_token, to_swa, rng.choice([1, 8, 128])
            swa = torch.tensor(to_swa, dtype=rng.choice([torch.int32, torch.int64]))
            arguments = {"req_to_token": i32(to_token), "full_to_swa": swa, "swa_page": maps[2]}
        cu = i32([sum(owned[:i]) for i in range(batch + 1)])
        index = rng.choice([torch.int32, torch.int64])
        tensors = cu, i32(used), torch.tensor(start, dtype=index), torch.tensor(slot, dtype=index)
        with dspark_ops.use_backend(backend):
            got = state_rows(*tensors, ratio, coff, ring, width, -7, **arguments)
        want = [walk_rows(owned[i], used[i], start[i], slot[i], coff * ratio, ring, width, maps) for i in range(batch)]
        assert got.shape == (batch, coff * ratio + width)
        assert got.tolist() == want


def test_rows_of_values_outside_the_range(backend: str) -> None:
    """Saturated positions, more owned rows than columns, fewer than none, huge slots and window entries."""
    with dspark_ops.use_backend(backend):
        start = torch.tensor([1 << 40, -3, 2])
        got = state_rows(i32([0, 99, 98, 98]), i32([1, 1, 1]), start, torch.tensor([0, 1, 1 << 62]), 2, 1, 4, 2, 9)
        # 2^31 - 3 is 1 mod 4. Request 1 starts at 0 and owns -1 rows: its only column lies before position 0.
        assert got.tolist() == [[1, 2, 3, 0], [9, 9, 9, 9], [9, 9, 9, 9]]
        swa = torch.tensor([(1 << 63) - 1, 1 << 40, -1, 6])
        maps = {"req_to_token": i32([[0, 1, 2, 3, 4, -1]]), "full_to_swa": swa, "swa_page": 1 << 20}
        got = state_rows(i32([0, 6]), i32([1]), i32([0]), i32([0]), 1, 1, 4, 6, 9, **maps)
        assert got.tolist() == [[9, 9, (1 << 20) * 4, 9, 2, 9, 9]]


def test_empty_maps_give_the_dummy_row(backend: str) -> None:
    maps = {"req_to_token": i32([]).reshape(3, 0), "full_to_swa": i32([]), "swa_page": 4}
    with dspark_ops.use_backend(backend):
        assert state_rows(i32([0, 1]), i32([1]), i32([5]), i32([0]), 1, 1, 4, 1, 9, **maps).tolist() == [[9, 9]]


def needed_blocks(used: int, start: int, ratio: int, coff: int, block_size: int) -> set[int]:
    """Blocks of every position that a token of the step reads or writes: its window and the coff - 1 before it."""
    return {
        position // block_size
        for token in range(start, start + used)
        for position in range(max(0, (token // ratio - (coff - 1)) * ratio), token + 1)
    }


@pytest.mark.parametrize(("ratio", "coff"), [(4, 2), (128, 1), (7, 3)])
def test_blocks_walk(ratio: int, coff: int, backend: str) -> None:
    rng = Random(ratio)
    for _ in range(100):
        batch, blocks, block_size = rng.randint(0, 4), rng.choice([0, 1, 60]), rng.choice([1, 4, 8, 100])
        start = [rng.choice([0, ratio - 1, ratio, rng.randint(0, 400)]) for _ in range(batch)]
        used = [rng.choice([0, 0, 1, ratio, rng.randint(0, 20)]) for _ in range(batch)]
        dtype = rng.choice([torch.int32, torch.int64])
        table = torch.arange(1, batch * blocks + 1, dtype=dtype).reshape(batch, blocks)
        with dspark_ops.use_backend(backend):
            got = state_blocks(table, i32(used), torch.tensor(start, dtype=torch.int64), ratio, coff, block_size)
        assert got.dtype is dtype
        for i in range(batch):
            needed = needed_blocks(used[i], start[i], ratio, coff, block_size)
            assert got[i].tolist() == [id_ if p in needed else 0 for p, id_ in enumerate(table[i].tolist())]


def test_blocks_of_values_outside_the_range(backend: str) -> None:
    table = i32([[1, 2, 3]] * 3)
    with dspark_ops.use_backend(backend):
        got = state_blocks(table, i32([INT32_MAX, 1, -1]), torch.tensor([-5, 1 << 40, 0]), 4, 2, 1 << 30)
    assert got.tolist() == [[1, 2, 0], [0, 2, 0], [0, 0, 0]]


def test_strided_input_and_out(backend: str) -> None:
    rows, blocks = torch.empty(2, 3, dtype=torch.int32), torch.empty(2, 2, dtype=torch.int64)
    with dspark_ops.use_backend(backend):
        used, start = i32([1, 0, 1])[::2], i32([2, 0, 3])[::2]
        slot = torch.tensor([1, 9, 2, 9])[::2]
        assert state_rows(i32([0, 1, 2]), used, start, slot, 2, 1, 10, 1, -1, out=rows) is rows
        table = torch.tensor([[1, 2], [3, 4]]).T
        assert state_blocks(table, used, start, 2, 1, 2, out=blocks) is blocks
    assert rows.tolist() == [[10, 11, 12], [21, 22, 23]]
    assert blocks.tolist() == [[0, 3], [0, 4]]


ROWS: dict[str, Any] = {
    "cu_seqlens": i32([0, 1]),
    "seqused": i32([1]),
    "start_pos": i32([0]),
    "request_slot": i32([0]),
    "ratio": 4,
    "coff": 2,
    "ring": 16,
    "max_verify_len": 2,
    "dummy_row": -1,
}


def test_compiles(backend: str) -> None:
    rows_op, blocks_op = (torch.compile(f, fullgraph=True, backend="aot_eager") for f in (state_rows, state_blocks))
    with dspark_ops.use_backend(backend):
        rows, blocks = rows_op(**ROWS), blocks_op(i32([[5, 6]]), i32([1]), i32([4]), 4, 1, 4)
    assert rows.tolist() == [[-1] * 8 + [0, -1]]
    assert blocks.tolist() == [[0, 6]]
