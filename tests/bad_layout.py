# ruff: noqa: E501 (a table: one line a row)
"""Bad input of the layout functions and of the moves between compact and strided rows."""

from __future__ import annotations

from typing import Any

import torch
from bad_row import Row, i32, i64

import dspark_ops
from dspark_ops import PaddedLens


def ragged(**kw: Any) -> object:
    return dspark_ops.ragged_layout(**{"verify_lens": i32([1, 2]), "rows": 4, **kw})


def pad(**kw: Any) -> object:
    return dspark_ops.pad_to_bucket(**{"verify_lens": i32([1, 2]), "rows": 6, "num_slots": 3, **kw})


def capture(**kw: Any) -> object:
    return dspark_ops.capture_lens(**{"rows": 4, "num_slots": 4, "width": 2, **kw})


def scatter(**kw: Any) -> object:
    return dspark_ops.scatter_to_strided(**{"compact": torch.ones(1), "cu_seqlens": i32([0, 1]), "width": 2, **kw})


def gather(**kw: Any) -> object:
    return dspark_ops.gather_from_strided(**{"strided": torch.ones(4), "cu_seqlens": i32([0, 1, 3]), "rows": 3, **kw})


def ones(dtype: torch.dtype) -> torch.Tensor:
    return torch.ones(1, dtype=dtype)


TABLE: list[Row] = [
    (ragged, {"verify_lens": i64([1, 2])}, TypeError, "verify_lens: expected dtype torch.int32, got torch.int64"),
    (ragged, {"verify_lens": [1, 2]}, TypeError, "verify_lens: expected a torch.Tensor, got list"),
    (ragged, {"rows": -1}, ValueError, "rows: expected an int in"),
    (ragged, {"rows": 2.0}, TypeError, "rows: expected an int, got float"),
    (ragged, {"prefix": i32([1])}, ValueError, "prefix: expected shape [2], got [1]"),
    (ragged, {"root_tokens": i64([1, 2])}, ValueError, "root_tokens, draft_tokens: expected both or neither"),
    (ragged, {"root_tokens": i64([1, 2]), "draft_tokens": i64([1, 2])}, ValueError, "draft_tokens: expected shape"),
    (ragged, {"root_tokens": i64([1, 2]), "draft_tokens": i64([[], []])}, ValueError, "gamma: expected at least one"),
    (ragged, {"out": dspark_ops.ragged_layout(i32([1, 2]), 5)}, ValueError, "out.row_request: expected shape [4], got [5]"),
    (ragged, {"out": dspark_ops.ragged_layout(i32([1, 2]), 4, prefix=i32([0, 0]))}, ValueError, "prefix: expected a tensor"),
    (pad, {"verify_lens": i32([[1]])}, ValueError, "verify_lens: expected shape [B]"),
    (pad, {"rows": -1}, ValueError, "rows: expected an int in"),
    (pad, {"rows": True}, TypeError, "rows: expected an int, got bool"),
    (pad, {"num_slots": 1}, ValueError, "num_slots: expected at least one per request, got 1 for 2"),
    (pad, {"cap": -1}, ValueError, "cap: expected an int in [0, 2147483647], got -1"),
    (pad, {"out": PaddedLens(i32([0] * 4), i32([0] * 4))}, ValueError, "out.padded: expected shape [3], got [4]"),
    (pad, {"out": PaddedLens(i32([0] * 6)[::2], i32([0] * 3))}, ValueError, "out.padded: an output must be contiguous"),
    (capture, {"num_slots": 0}, ValueError, "num_slots: expected an int in"),
    (capture, {"rows": 3}, ValueError, "rows: expected an int in [4, 8], got 3"),
    (capture, {"rows": 9}, ValueError, "rows: expected an int in [4, 8], got 9"),
    (capture, {"rows": 4.0}, TypeError, "rows: expected an int, got float"),
    (capture, {"width": 0}, ValueError, "width: expected an int in"),
    (scatter, {"compact": torch.tensor(1.0)}, ValueError, "compact: expected shape [rows, ...], got []"),
    (scatter, {"compact": [1.0]}, TypeError, "compact: expected a torch.Tensor, got list"),
    (scatter, {"cu_seqlens": i64([0, 1])}, TypeError, "cu_seqlens: expected dtype torch.int32"),
    (scatter, {"cu_seqlens": i32([])}, ValueError, "cu_seqlens: expected B + 1 values"),
    (scatter, {"width": 0}, ValueError, "width: expected an int in"),
    (scatter, {"cu_seqlens": i32([0] * 4), "width": 1 << 17}, ValueError, "B·N: expected at most 262144 rows, got 393216"),
    (scatter, {"fill": "x"}, TypeError, "fill: expected a number, got str"),
    (scatter, {"fill": 1j}, ValueError, "fill: expected a real number for torch.float32"),
    (scatter, {"compact": ones(torch.int32), "fill": 0.5}, ValueError, "fill: expected a value of torch.int32"),
    (scatter, {"compact": ones(torch.uint8), "fill": 256}, ValueError, "fill: expected a value of torch.uint8"),
    (scatter, {"compact": ones(torch.uint8), "fill": -1}, ValueError, "fill: expected a value of torch.uint8"),
    (scatter, {"compact": ones(torch.bool), "fill": 2}, ValueError, "fill: expected a value of torch.bool"),
    (scatter, {"compact": ones(torch.complex128), "fill": 1}, ValueError, "fill: expected 0 for torch.complex128"),
    (scatter, {"out": torch.ones(3)}, ValueError, "out: expected shape [2], got [3]"),
    (scatter, {"out": torch.ones(2, dtype=torch.float64)}, TypeError, "out: expected dtype torch.float32"),
    (scatter, {"out": torch.ones(4)[::2]}, ValueError, "out: an output must be contiguous"),
    (gather, {"strided": torch.ones(3)}, ValueError, "strided: expected the same number of rows for each of 2 requests, got 3"),
    (gather, {"cu_seqlens": i32([0])}, ValueError, "strided: expected the same number of rows for each of 0 requests, got 4"),
    (gather, {"strided": torch.ones((1 << 18) + 2)}, ValueError, "B·N: expected at most 262144 rows, got 262146"),
    (gather, {"cu_seqlens": i64([0, 1, 2])}, TypeError, "cu_seqlens: expected dtype torch.int32"),
    (gather, {"rows": -1}, ValueError, "rows: expected an int in"),
    (gather, {"fill": None}, TypeError, "fill: expected a number, got NoneType"),
    (gather, {"out": torch.ones(2)}, ValueError, "out: expected shape [3], got [2]"),
]  # fmt: skip
