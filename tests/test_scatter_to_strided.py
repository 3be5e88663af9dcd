"""`scatter_to_strided`: golden cases, every dtype byte for byte, fills, offsets that make no sense."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch

import dspark_ops
import golden_data
from dspark_ops import gather_from_strided, scatter_to_strided

GOLDEN = golden_data.load("ragged_layout")
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.complex64,
    torch.complex128,
]
INT32_MAX = (1 << 31) - 1


def i32(values: list[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def rows_of_bytes(t: torch.Tensor) -> list[bytes]:
    flat = t.contiguous().view(-1).view(torch.uint8)
    return [bytes(row.tolist()) for row in flat.reshape(t.shape[0], -1)]


def random_rows(rng: Random, rows: int, trailing: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Random bytes read as the dtype: NaN payloads and denormals included."""
    t = torch.empty(rows, *trailing, dtype=dtype)
    data = torch.tensor(list(rng.randbytes(t.numel() * t.element_size())), dtype=torch.uint8)
    t.view(-1).view(torch.uint8).copy_(data & 1 if dtype is torch.bool else data)
    return t


def brute_force(compact: torch.Tensor, cu: list[int], width: int, fill: torch.Tensor) -> list[bytes]:
    source, filled = rows_of_bytes(compact), rows_of_bytes(fill.expand(1, *compact.shape[1:]))[0]
    result = []
    for i in range(len(cu) - 1):
        for k in range(width):
            row = cu[i] + k
            result.append(source[row] if row < cu[i + 1] and 0 <= row < len(source) else filled)
    return result


@pytest.mark.parametrize("case", GOLDEN, ids=range(len(GOLDEN)))
def test_golden(case: dict[str, Any], backend: str) -> None:
    with dspark_ops.use_backend(backend):
        got = scatter_to_strided(torch.tensor(case["compact"]), i32(case["cu_seqlens"]), case["width"], case["fill"])
    assert got.tolist() == case["strided"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype: torch.dtype, backend: str) -> None:
    rng = Random(str(dtype))
    fill = 0 if dtype is torch.complex128 else 1
    for trailing in ([], [1], [3, 2], [401]):
        cu = [0, 2, 2, 7, 8]
        compact = random_rows(rng, 8, trailing, dtype)
        with dspark_ops.use_backend(backend):
            got = scatter_to_strided(compact, i32(cu), 4, fill)
        assert got.dtype is dtype
        assert got.shape == (16, *trailing)
        assert rows_of_bytes(got) == brute_force(compact, cu, 4, torch.tensor([fill], dtype=dtype))


def test_offsets_that_make_no_sense(backend: str) -> None:
    rng = Random(4)
    compact = random_rows(rng, 6, [3], torch.int32)
    senseless = [-(1 << 31), INT32_MAX, -3, -1, 0, 2, 5, 6, 7, 20]
    for _ in range(300):
        cu = [rng.choice(senseless) for _ in range(rng.randint(1, 5))]
        with dspark_ops.use_backend(backend):
            got = scatter_to_strided(compact, i32(cu), 5, -1)
        want = brute_force(compact, cu, 5, i32([-1]))
        assert (rows_of_bytes(got) if len(cu) > 1 else []) == want


FILLS = [
    (torch.float32, -7.0),
    (torch.float32, -0.0),
    (torch.float32, float("nan")),
    (torch.float32, float("inf")),
    (torch.float32, 0.1),
    (torch.float64, 0.1),
    (torch.bfloat16, 0.1),
    (torch.float16, -2),
    (torch.float8_e4m3fn, 1.5),
    (torch.bool, True),
    (torch.int8, -128),
    (torch.uint8, 255),
    (torch.int64, -(1 << 63)),
    (torch.int64, (1 << 63) - 1),
    (torch.int32, 3.0),
    (torch.complex64, 1.5 - 2j),
    (torch.complex128, 0),
]


@pytest.mark.parametrize(("dtype", "fill"), FILLS, ids=str)
def test_fill(dtype: torch.dtype, fill: Any, backend: str) -> None:
    with dspark_ops.use_backend(backend):
        got = scatter_to_strided(torch.empty(0, 300, dtype=dtype), i32([0, 0]), 3, fill)
    assert rows_of_bytes(got) == rows_of_bytes(torch.full((3, 300), fill, dtype=dtype))


def test_equal_fills_of_different_types_are_told_apart() -> None:
    compact = torch.empty(0, 1)
    for fill in (0.0, -0.0, 0, False, 1, True, 1.0):
        got = scatter_to_strided(compact, i32([0, 0]), 1, fill)
        assert rows_of_bytes(got) == rows_of_bytes(torch.full((1, 1), float(fill)))


def test_round_trip(backend: str) -> None:
    compact = torch.randn(9, 5)
    cu = i32([0, 3, 3, 7, 9])
    with dspark_ops.use_backend(backend):
        assert torch.equal(gather_from_strided(scatter_to_strided(compact, cu, 4), cu, 9), compact)


def test_empty(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        assert scatter_to_strided(torch.ones(3, 2), i32([0]), 4).shape == (0, 2)
        assert scatter_to_strided(torch.ones(3, 0), i32([0, 3]), 4).shape == (4, 0)


def test_strided_input_conjugate_view_and_out(backend: str) -> None:
    compact = torch.arange(24.0).reshape(3, 8)
    conjugate = torch.tensor([[1 + 2j]]).conj()
    out = torch.empty(4, 4)
    with dspark_ops.use_backend(backend):
        got = scatter_to_strided(compact[:, ::2], i32([0, 9, 3, 9])[::2], 4, out=out)
        assert scatter_to_strided(conjugate, i32([0, 1]), 1).tolist() == [[1 - 2j]]
        one_row = torch.arange(8.0)[::4].reshape(2, 1)[:1]
        assert scatter_to_strided(one_row, i32([0, 1]), 2, -1.0).tolist() == [[0.0], [-1.0]]
    assert got is out
    assert out[:3].tolist() == compact[:, ::2].tolist()
    assert out[3].tolist() == [0.0] * 4


def test_compiles_with_any_fill(backend: str) -> None:
    torch.compiler.reset()  # every fill is a graph of its own, and torch limits their number
    compiled = torch.compile(scatter_to_strided, fullgraph=True, backend="aot_eager")
    compact = torch.ones(1, 2, dtype=torch.bfloat16)
    with dspark_ops.use_backend(backend):
        for fill in (-7.5, 0, 3, 4, 0.25, -1.0):
            assert compiled(compact, i32([0, 1]), 2, fill).tolist() == [[1.0, 1.0], [fill, fill]]
