"""`ragged_layout`: golden layouts, brute force, saturation, optional outputs."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch

import dspark_ops
import golden_data
from conftest import cases_for
from dspark_ops import RaggedLayout, ragged_layout

GOLDEN = golden_data.load("ragged_layout")
INT32_MAX = (1 << 31) - 1


def i32(values: list[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def i64(values: list[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def brute_force(
    lens: list[int], rows: int, prefix: list[int], root: list[int], drafts: list[list[int]]
) -> dict[str, Any]:
    """Row after row, then padding; Python ints know no overflow."""
    table = []
    cu, cu_k, cached = [0], [0], []
    for i, length in enumerate(max(n, 0) for n in lens):
        for k in range(min(length, rows - len(table))):
            token = root[i] if k == 0 else drafts[i][k - 1] if k <= len(drafts[i]) else 0
            table.append((i, k, prefix[i] + k, token))
        cu.append(min(cu[-1] + length, INT32_MAX))
        cached.append(min(max(prefix[i] + length, 0), INT32_MAX))
        cu_k.append(min(cu_k[-1] + cached[-1], INT32_MAX))
    table += [(-1, 0, 0, 0)] * (rows - len(table))
    request, offset, position, ids = (
        (list(column) for column in zip(*table, strict=True)) if table else ([], [], [], [])
    )
    return {
        "cu_seqlens": cu,
        "row_request": request,
        "row_offset": offset,
        "position": position,
        "verify_ids": ids,
        "cache_seqlens": cached,
        "cu_seqlens_k": cu_k,
    }


@pytest.mark.parametrize("case", GOLDEN, ids=range(len(GOLDEN)))
def test_golden(case: dict[str, Any], backend: str) -> None:
    with dspark_ops.use_backend(backend):
        got = ragged_layout(
            i32(case["verify_lens"]),
            case["rows"],
            prefix=i32(case["prefix_lens"]),
            root_tokens=i64(case["root_tokens"]),
            draft_tokens=i64(case["draft_tokens"]),
        )
    batch = len(case["verify_lens"])
    assert got.cu_seqlens.tolist() == case["cu_seqlens"]
    assert got.cu_seqlens[:-1].tolist() == case["start"]
    # SGLang marks padding with request B, this package with -1.
    assert got.row_request.tolist() == [-1 if i == batch else i for i in case["row_request"]]
    assert (got.row_request >= 0).tolist() == case["row_valid"]
    assert got.row_offset.tolist() == case["row_offset"]
    assert got.verify_ids.tolist() == case["verify_ids"]
    assert got.max_verify_len() == max(case["verify_lens"])


def test_brute_force(backend: str) -> None:
    rng = Random(1)
    for _ in range(cases_for(backend, 200)):
        batch, gamma = rng.randint(0, 6), rng.randint(1, 5)
        lens = [rng.randint(-2, gamma + 3) for _ in range(batch)]
        rows = rng.choice([0, 1, rng.randint(0, 40)])
        prefix = [rng.choice([0, -7, 5000, INT32_MAX, rng.randint(0, 99)]) for _ in range(batch)]
        root = [rng.randint(0, 999) for _ in range(batch)]
        drafts = [[rng.randint(0, 999) for _ in range(gamma)] for _ in range(batch)]
        with dspark_ops.use_backend(backend):
            got = ragged_layout(
                i32(lens),
                rows,
                prefix=torch.tensor(prefix, dtype=rng.choice([torch.int32, torch.int64])),
                root_tokens=i64(root),
                draft_tokens=i64(drafts).reshape(batch, gamma),
            )
        assert {k: v.tolist() for k, v in got._asdict().items()} == brute_force(lens, rows, prefix, root, drafts)


def test_sums_saturate(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        got = ragged_layout(i32([INT32_MAX, INT32_MAX, 1]), 3, prefix=i64([1 << 40, -(1 << 63), (1 << 63) - 1]))
    assert got.cu_seqlens.tolist() == [0, INT32_MAX, INT32_MAX, INT32_MAX]
    assert got.row_request.tolist() == [0, 0, 0]
    assert got.cache_seqlens.tolist() == [INT32_MAX, 0, INT32_MAX]
    assert got.cu_seqlens_k.tolist() == [0, INT32_MAX, INT32_MAX, INT32_MAX]


def test_only_what_was_asked_for(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        bare = ragged_layout(i32([2]), 3)
        assert bare[3:] == (None, None, None, None)
        only_position = RaggedLayout(
            *(torch.empty_like(t) for t in bare[:3]), position=torch.empty(3, dtype=torch.int64)
        )
        got = ragged_layout(i32([2]), 3, prefix=i32([9]), out=only_position)
    assert got.position.tolist() == [9, 10, 0]
    assert got.cache_seqlens is None


def test_out_keeps_addresses(backend: str) -> None:
    tokens = {"root_tokens": i64([1, 2]), "draft_tokens": i64([[3], [4]])}
    with dspark_ops.use_backend(backend):
        first = ragged_layout(i32([2, 1]), 4, prefix=i32([0, 0]), **tokens)
        second = ragged_layout(i32([1, 2]), 4, prefix=i32([5, 6]), **tokens, out=first)
    assert all(a is b for a, b in zip(first, second, strict=True))
    assert second.verify_ids.tolist() == [1, 2, 4, 0]
    assert second.position.tolist() == [5, 6, 7, 0]


def test_strided_input(backend: str) -> None:
    lens, prefix = i32([2, 9, 1, 9]), i64([3, 9, 4, 9])
    tokens = torch.arange(12).reshape(2, 6)
    with dspark_ops.use_backend(backend):
        views = ragged_layout(
            lens[::2], 4, prefix=prefix[::2], root_tokens=tokens[:, 0], draft_tokens=tokens[:, 1:].flip(1)[:, ::2]
        )
    assert views.verify_ids.tolist() == [0, 5, 6, 0]
    assert views.position.tolist() == [3, 4, 4, 0]


def test_max_verify_len_is_for_the_host() -> None:
    assert ragged_layout(i32([]), 0).max_verify_len() == 0
    assert ragged_layout(i32([3, 0, 5]), 1).max_verify_len() == 5
    with pytest.raises(ValueError, match="max_verify_len: expected a layout on cpu, got one on meta"):
        ragged_layout(i32([3]).to("meta"), 4).max_verify_len()


def test_compiles(backend: str) -> None:
    arguments = {"prefix": i32([5, 6]), "root_tokens": i64([1, 2]), "draft_tokens": i64([[3], [4]])}
    with dspark_ops.use_backend(backend):
        compiled = torch.compile(ragged_layout, fullgraph=True, backend="aot_eager")
        got, want = compiled(i32([2, 1]), 4, **arguments), ragged_layout(i32([2, 1]), 4, **arguments)
    assert isinstance(got, RaggedLayout)
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a, b)
