"""`pad_to_bucket` and `capture_lens`: golden cases, brute force, edges."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch

import dspark_ops
import golden_data
from dspark_ops import PaddedLens, capture_lens, pad_to_bucket

BUCKETS = golden_data.load("ragged_layout")
CAPTURES = golden_data.load("capture_layout")
INT32_MAX = (1 << 31) - 1


def i32(values: list[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def padded(lens: list[int], rows: int, slots: int, cap: int | None = None) -> tuple[list[int], list[int]]:
    got = pad_to_bucket(i32(lens), rows, slots, cap=cap)
    return got.padded.tolist(), got.seqused.tolist()


def brute_force(lens: list[int], rows: int, slots: int, cap: int | None) -> tuple[list[int], list[int]]:
    """Deals the free rows out one at a time."""
    used = [max(n, 0) for n in lens] + [0] * (slots - len(lens))
    owned = list(used)
    takers = list(range(len(lens), slots)) or ([slots - 1] if slots else [])
    for j in range(max(rows - sum(used), 0) if takers else 0):
        owned[takers[j % len(takers)]] += 1
    bound = INT32_MAX if cap is None else cap
    return [min(n, bound) for n in owned], [min(n, bound) for n in used]


@pytest.mark.parametrize("case", BUCKETS, ids=range(len(BUCKETS)))
def test_golden(case: dict[str, Any], backend: str) -> None:
    lens, rows, slots = case["verify_lens"], case["rows"], case["padded_bs"]
    used = lens + [0] * (slots - len(lens))
    with dspark_ops.use_backend(backend):
        assert padded(lens, rows, slots) == (case["padded"], used)
        assert padded(lens, rows, slots, case["width"]) == (case["padded_capped"], used)


def test_brute_force(backend: str) -> None:
    rng = Random(2)
    with dspark_ops.use_backend(backend):
        for _ in range(300):
            batch = rng.randint(0, 6)
            lens = [rng.randint(-2, 9) for _ in range(batch)]
            args = lens, rng.randint(0, 60), batch + rng.choice([0, 1, 2, 5]), rng.choice([None, 0, 1, 4, 9])
            assert padded(*args) == brute_force(*args), args


def test_edges(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        assert padded([4, 4], 6, 4) == ([4, 4, 0, 0], [4, 4, 0, 0])  # slack < 0
        assert padded([4, 4], 6, 2) == ([4, 4], [4, 4])
        assert padded([4, 2], 9, 2) == ([4, 5], [4, 2])  # n = 0: the last request owns the slack, but does not use it
        assert padded([], 5, 3) == ([2, 2, 1], [0, 0, 0])  # B = 0
        assert padded([], 5, 0) == ([], [])
        assert padded([], 0, 2) == ([0, 0], [0, 0])
        assert padded([2, 1], 9, 4, 0) == ([0, 0, 0, 0], [0, 0, 0, 0])
        assert padded([2, 1], 9, 4, 1) == ([1, 1, 1, 1], [1, 1, 0, 0])
        assert padded([-5, INT32_MAX, INT32_MAX], INT32_MAX, 3) == ([0, INT32_MAX, INT32_MAX],) * 2
        assert padded([-(1 << 31)], INT32_MAX, 2) == ([0, INT32_MAX], [0, 0])


def test_strided_input_and_out(backend: str) -> None:
    out = PaddedLens(torch.empty(3, dtype=torch.int32), torch.empty(3, dtype=torch.int32))
    with dspark_ops.use_backend(backend):
        got = pad_to_bucket(i32([1, 9, 2, 9])[::2], 8, 3, out=out)
    assert got is out
    assert (out.padded.tolist(), out.seqused.tolist()) == ([1, 2, 5], [1, 2, 0])


def test_compiles(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        got = torch.compile(pad_to_bucket, fullgraph=True, backend="aot_eager")(i32([1, 2]), 8, 4, cap=3)
    assert (got.padded.tolist(), got.seqused.tolist()) == ([1, 2, 3, 2], [1, 2, 0, 0])


@pytest.mark.parametrize("case", CAPTURES, ids=range(len(CAPTURES)))
def test_capture_lens_golden(case: dict[str, Any]) -> None:
    got = capture_lens(case["rows"], case["slots"], case["width"])
    assert got.dtype is torch.int32
    assert got.tolist() == case["verify_lens"]
