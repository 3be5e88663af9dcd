"""`gather_from_strided`: brute force, every dtype byte for byte, offsets that make no sense."""

from __future__ import annotations

from random import Random

import pytest
import torch
from test_scatter_to_strided import DTYPES, INT32_MAX, i32, random_rows, rows_of_bytes

import dspark_ops
from dspark_ops import gather_from_strided


def owner_of(cu: list[int], row: int) -> int:
    """The bisection of the docstring; for offsets that never decrease, the request that owns the row."""
    low, high = 0, len(cu) - 1
    while low < high:
        middle = (low + high) // 2
        if cu[middle + 1] <= row:
            low = middle + 1
        else:
            high = middle
    return low


def brute_force(strided: torch.Tensor, cu: list[int], rows: int, fill: torch.Tensor) -> list[bytes]:
    batch = len(cu) - 1
    source, filled = rows_of_bytes(strided), rows_of_bytes(fill.expand(1, *strided.shape[1:]))[0]
    result = []
    for row in range(rows):
        owner = owner_of(cu, row)
        if cu == sorted(cu):
            owners = [i for i in range(batch) if cu[i] <= row < cu[i + 1]]
            assert owners in ([owner], [])
        offset = row - cu[owner] if owner < batch else -1
        width = len(source) // batch if batch else 0
        result.append(source[owner * width + offset] if 0 <= offset < width else filled)
    return result


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype: torch.dtype, backend: str) -> None:
    rng = Random(str(dtype))
    fill = 0 if dtype is torch.complex128 else 1
    for trailing in ([], [1], [3, 2], [401]):
        cu = [1, 3, 3, 9, 10]  # the first row belongs to no request, the third request owns more than N rows
        strided = random_rows(rng, 16, trailing, dtype)
        with dspark_ops.use_backend(backend):
            got = gather_from_strided(strided, i32(cu), 12, fill)
        assert got.dtype is dtype
        assert got.shape == (12, *trailing)
        assert rows_of_bytes(got) == brute_force(strided, cu, 12, torch.tensor([fill], dtype=dtype))


def test_brute_force(backend: str) -> None:
    rng = Random(5)
    for _ in range(300):
        batch, width, rows = rng.randint(1, 6), rng.randint(1, 5), rng.randint(1, 30)
        cu = [0]
        for _ in range(batch):
            cu.append(cu[-1] + rng.randint(0, width + 2))
        strided = random_rows(rng, batch * width, [3], torch.int16)
        with dspark_ops.use_backend(backend):
            got = gather_from_strided(strided, i32(cu), rows, -5)
        assert rows_of_bytes(got) == brute_force(strided, cu, rows, torch.tensor([-5], dtype=torch.int16))


def test_offsets_that_make_no_sense(backend: str) -> None:
    rng = Random(6)
    senseless = [-(1 << 31), INT32_MAX, -3, -1, 0, 2, 5, 6, 7, 20]
    for _ in range(400):
        batch = rng.randint(1, 6)
        cu = [rng.choice(senseless) for _ in range(batch + 1)]
        if rng.random() < 0.3:
            cu.sort()
        strided = random_rows(rng, batch * 4, [3], torch.int32)
        with dspark_ops.use_backend(backend):
            got = gather_from_strided(strided, i32(cu), 10, -1)
        assert rows_of_bytes(got) == brute_force(strided, cu, 10, i32([-1]))


def test_empty(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        assert gather_from_strided(torch.ones(0, 2), i32([0]), 3, 7.0).tolist() == [[7.0, 7.0]] * 3
        assert gather_from_strided(torch.ones(4, 2), i32([0, 3]), 0).shape == (0, 2)
        assert gather_from_strided(torch.ones(4, 0), i32([0, 3]), 5).shape == (5, 0)


def test_strided_input_and_out(backend: str) -> None:
    source = torch.arange(32.0).reshape(8, 4)
    out = torch.empty(3, 2)
    with dspark_ops.use_backend(backend):
        got = gather_from_strided(source[::2, ::2], i32([0, 1, 3]), 3, out=out)
    assert got is out
    assert out.tolist() == source[::2, ::2][[0, 2, 3]].tolist()


def test_compiles(backend: str) -> None:
    compiled = torch.compile(gather_from_strided, fullgraph=True, backend="aot_eager")
    with dspark_ops.use_backend(backend):
        assert compiled(torch.tensor([1, 2, 3, 4]), i32([0, 1, 3]), 4, -9).tolist() == [1, 3, 4, -9]
