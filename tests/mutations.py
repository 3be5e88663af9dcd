"""Calls with one argument spoilt: what a direct caller of `torch.ops.dspark` may get wrong, one thing at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from dspark_ops.testing import case, poison

Case = tuple[Any, ...]
INTS = [-2, -1, 0, 1, (1 << 18) + 1, 1 << 31, (1 << 62) + 1, -(1 << 63), (1 << 63) - 1]
FLOATS = [-1.0, -0.0, 1e-9, 1.5, 1e7, float("nan"), float("inf")]
OTHER_DTYPES = [torch.int32, torch.int64, torch.float32, torch.float64, torch.float16, torch.bool, torch.uint8]


def _resized(t: Tensor, dim: int, change: int) -> Tensor:
    """One element fewer or more along `dim`: the same values, then zeros."""
    size = list(t.shape)
    size[dim] += change
    other = poison(size, t.dtype).zero_()
    n = min(size[dim], t.shape[dim])
    other.narrow(dim, 0, n).copy_(t.narrow(dim, 0, n))
    return other


def _tensors(t: Tensor) -> Iterator[tuple[str, Any]]:
    for dtype in OTHER_DTYPES:
        if dtype is not t.dtype:
            yield f"as {dtype}", (t.real if t.is_complex() else t).to(dtype)
    yield "one dimension more", t.unsqueeze(-1)
    yield "flat", t.reshape(-1)
    yield "a scalar", torch.zeros((), dtype=t.dtype)
    for dim in range(t.dim()):
        for change in (-1, 1):
            if t.shape[dim] + change >= 0:
                yield f"{change:+d} in dimension {dim}", _resized(t, dim, change)
    if t.numel() > 1:
        yield "strided", torch.stack([t, t], -1)[..., 0]
    yield "a list", t.tolist()
    yield "a number", 3


def _spoilt(value: Any, is_optional: bool) -> Iterator[tuple[str, Any]]:
    if value is not None:
        yield "None", None
    if isinstance(value, Tensor):
        yield from _tensors(value)
    elif isinstance(value, bool):
        yield f"{not value}", not value
    elif isinstance(value, int):
        yield from ((str(n), n) for n in INTS if n != value)
        yield "a float", 0.5
        yield "True", True
    elif isinstance(value, float):
        yield from ((str(x), x) for x in FLOATS if x != value)
        yield "a string", "x"
    elif is_optional:
        yield "a number", 3
        for dtype in (torch.int32, torch.int64, torch.float32):
            yield from ((f"{n} of {dtype}", torch.arange(n, dtype=dtype)) for n in (1, 3))


def mutations(stem: str, seed: int) -> Iterator[tuple[str, Case]]:
    """The case with one argument changed, under a text that says which and how."""
    args = case(stem, seed)
    for i, argument in enumerate(getattr(torch.ops.dspark, stem).default._schema.arguments):
        for text, value in _spoilt(args[i], "Optional" in str(argument.type)):
            yield f"{argument.name} {text}", (*args[:i], value, *args[i + 1 :])
