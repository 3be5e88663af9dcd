"""Calls of the layout, move, compressor and acceptance operators for `aot.py`: the forms that a deployment would meet.

The kernels do not depend on the batch but for two chunk sizes, so few sizes give all variants. `CALLS` maps a stem to
its calls, each a label and the arguments of the dispatcher schema; `verify_metadata`, which is a function over three
operators, takes keywords too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from dspark_ops import CompressorTable

Call = tuple[Any, ...]  # label, arguments and, if there are any, keywords
BATCHES = (64, 1024)
GAMMAS = (7, 15)


def _i32(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32)


def _i64(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64)


def ragged_layout() -> Iterator[Call]:
    for batch in BATCHES:
        rows, tokens = 8 * batch, (_i64(batch), _i64(batch, 7))
        outputs = (_i32(batch + 1), _i32(rows), _i32(rows))
        yield f"rows only, B={batch}", (_i32(batch), None, None, None, *outputs, None, None, None, None)
        everything = (_i64(rows), _i64(rows), _i32(batch), _i32(batch + 1))
        yield f"all outputs, B={batch}", (_i32(batch), _i64(batch), *tokens, *outputs, *everything)


def pad_to_bucket() -> Iterator[Call]:
    for batch in BATCHES:
        yield f"B={batch}", (_i32(batch), 8 * batch, -1, _i32(batch + 8), _i32(batch + 8))


def compressor_layout() -> Iterator[Call]:
    for batch in BATCHES:
        rows = 8 * batch
        args: list[Any] = [_i32(batch + 1), _i32(batch), _i32(batch), rows, True]
        outputs: list[Any] = [_i32(batch), _i32(batch), _i32(batch)]
        for ratio in (4, 128):
            capacity = min(rows, rows // ratio + batch)
            args += [ratio, _i32(batch, 64), 64, -1]
            outputs += [_i32(batch + 1), _i64(capacity), _i32(capacity), _i32(capacity)]
        yield f"C4 and C128, B={batch}", (*args, *outputs)
        yield f"C4, B={batch}", (*args[:9], 1, None, 1, 0, *outputs[:7], None, None, None, None)


def verify_metadata() -> Iterator[Call]:
    """A bucket with slots to spare: the padded form of `ragged_layout`, then `compressor_layout`."""
    for batch in BATCHES:
        slots, tokens = batch + 8, {"root_tokens": _i64(batch + 8), "draft_tokens": _i64(batch + 8, 7)}
        tables = [CompressorTable(ratio, _i32(slots, 64), 64) for ratio in (4, 128)]
        bucket = (_i32(batch), 8 * batch, slots)
        yield f"no tables, B={batch}", bucket
        yield f"tokens, C4 and C128, B={batch}", bucket, {"prefix": _i64(slots), **tokens, "tables": tables}


def state_rows() -> Iterator[Call]:
    shared = (_i32(65), _i32(64), _i32(64), _i64(64))
    yield "C128, ring per request", (*shared, None, None, 128, 1, 256, 0, 0, _i32(64, 136))
    yield "C4, ring per page", (*shared, _i32(64, 99), _i64(99), 4, 2, 16, 64, 0, _i32(64, 16))


def state_blocks() -> Iterator[Call]:
    yield "B=64", (_i32(64, 512), _i32(64), _i32(64), 4, 2, 128, _i32(64, 512))


def _rows(columns: int, dtype: torch.dtype, rows: int) -> torch.Tensor:
    return torch.zeros(rows, columns, dtype=dtype)


def _widths() -> Iterator[tuple[str, int, torch.dtype]]:
    yield "one token", 1, torch.int64
    yield "hidden 4096 bf16", 4096, torch.bfloat16
    yield "vocabulary 151936 bf16", 151936, torch.bfloat16
    yield "odd row bf16", 4097, torch.bfloat16
    yield "odd row of bytes", 4097, torch.uint8
    yield "small row fp32", 9, torch.float32


def scatter_to_strided() -> Iterator[Call]:
    for label, columns, dtype in _widths():
        yield label, (_rows(columns, dtype, 8), _i32(3), 8, 0, _rows(columns, dtype, 16))


def gather_from_strided() -> Iterator[Call]:
    for label, columns, dtype in _widths():
        yield label, (_rows(columns, dtype, 16), _i32(3), 0, _rows(columns, dtype, 8))


def _learning(batch: int, gamma: int) -> tuple[Any, ...]:
    return torch.rand(batch, gamma), _i64(batch), 0.9, 0.1, 4.0, torch.zeros(batch)


def _accepted(batch: int, gamma: int) -> tuple[Any, ...]:
    return _i32(batch), _i32(batch), _i64(batch), _i32(batch), _i32(batch), _i64(batch, gamma + 1)


def accept_greedy() -> Iterator[Call]:
    for gamma in GAMMAS:
        shared = (_i64(64, gamma), _i64(64 * (gamma + 1)), _i32(64), _i32(64))
        nothing = (None, None, 1.0, 0.1, 4.0, None)
        yield f"strided, gamma={gamma}", (*shared, None, *nothing, *_accepted(64, gamma))
        yield f"compact, learning, gamma={gamma}", (*shared, _i32(65), *_learning(64, gamma), *_accepted(64, gamma))


def finalize_accept() -> Iterator[Call]:
    for gamma in GAMMAS:
        shared = (_i32(64), _i64(64, gamma), _i32(64), _i32(64), _i64(64), None, None)
        yield f"bonus, learning, gamma={gamma}", (*shared, *_learning(64, gamma), *_accepted(64, gamma))


def update_offset() -> Iterator[Call]:
    confidence, *rest = _learning(64, 7)
    yield "with slots", (confidence, _i32(64), _i32(64), *rest)


CALLS: dict[str, Callable[[], Iterator[Call]]] = {
    f.__name__: f
    for f in (
        ragged_layout, pad_to_bucket, compressor_layout, verify_metadata, state_rows, state_blocks,
        scatter_to_strided, gather_from_strided, accept_greedy, finalize_accept, update_offset,
    )
}  # fmt: skip
