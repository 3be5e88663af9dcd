"""Host checks shared by the operators. Each error names the argument, what was expected and what came."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import Tensor

MAX_VERIFY_ROWS = 1 << 18
MAX_INT = 1 << 62  # bound of ints that have no other
# Checks that read tensor values synchronise with the device, so they are off unless asked for.
VALUE_CHECKS = os.environ.get("DSPARK_CHECK") == "1"
INDEX_DTYPES = (torch.int32, torch.int64)
FLOAT_DTYPES = (torch.float32, torch.bfloat16, torch.float16)

Dtypes = torch.dtype | tuple[torch.dtype, ...]
Shape = Sequence[int | str | None]


def _shape_text(shape: Shape) -> str:
    return "[" + ", ".join("*" if n is None else str(n) for n in shape) + "]"


def rank(name: str, t: Tensor, shape: Shape) -> None:
    """Require a tensor of as many dimensions as `shape`: what must hold before its sizes are read."""
    if not isinstance(t, Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(t).__name__}")
    if t.dim() != len(shape):
        raise ValueError(f"{name}: expected shape {_shape_text(shape)}, got {list(t.shape)}")


def tensor(name: str, t: Tensor, dtype: Dtypes, shape: Shape, device: torch.device | None = None) -> None:
    """Require a tensor of this dtype, shape (None or a letter matches any size) and, if given, device."""
    if isinstance(t, Tensor) and t.dtype is not dtype and (isinstance(dtype, torch.dtype) or t.dtype not in dtype):
        expected = str(dtype) if isinstance(dtype, torch.dtype) else " or ".join(map(str, dtype))
        raise TypeError(f"{name}: expected dtype {expected}, got {t.dtype}")
    rank(name, t, shape)
    for n, want in zip(t.shape, shape, strict=True):
        if isinstance(want, int) and n != want:
            raise ValueError(f"{name}: expected shape {_shape_text(shape)}, got {list(t.shape)}")
    if device is not None and t.device != device:
        raise ValueError(f"{name}: expected a tensor on {device}, got one on {t.device}")


def result(name: str, out: object, kind: type) -> None:
    """Require the workspace that an earlier call returned."""
    if not isinstance(out, kind):
        raise TypeError(f"{name}: expected a {kind.__name__}, got {type(out).__name__}")


def optional(name: str, t: Tensor | None, dtype: Dtypes, shape: Shape, device: torch.device | None = None) -> None:
    """As `tensor`, for an argument that may be None."""
    if t is not None:
        tensor(name, t, dtype, shape, device)


def output(name: str, t: Tensor, dtype: Dtypes, shape: Shape, device: torch.device) -> None:
    """As `tensor`, for an argument that is written: it must be contiguous, since a copy would lose the result."""
    tensor(name, t, dtype, shape, device)
    if not t.is_contiguous():
        raise ValueError(f"{name}: an output must be contiguous, got strides {t.stride()}")


def optional_output(name: str, t: Tensor | None, dtype: Dtypes, shape: Shape, device: torch.device) -> None:
    """As `output`, for an argument that may be None."""
    if t is not None:
        output(name, t, dtype, shape, device)


def integer(name: str, value: int, low: int, high: int = MAX_INT) -> None:
    """Require an int in [low, high]; a bool is not an int here."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, int | torch.SymInt)):
        raise TypeError(f"{name}: expected an int, got {type(value).__name__}")
    if value < low or value > high:
        expected = f"in [{low}, {high}]" if high < MAX_INT or value > high else f">= {low}"
        raise ValueError(f"{name}: expected an int {expected}, got {value}")


def number(name: str, value: float, low: float, high: float) -> None:
    """Require a finite number in [low, high]; NaN is refused."""
    if isinstance(value, bool) or not isinstance(value, int | float | torch.SymFloat):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
    if not low <= value <= high:
        raise ValueError(f"{name}: expected a number in [{low:g}, {high:g}], got {value}")


def verify_width(num_reqs: int, gamma: int) -> None:
    """Require 1 <= γ, N = γ + 1 <= 2^18 and B·N <= 2^18."""
    if gamma < 1:
        raise ValueError(f"gamma: expected at least one draft token per request, got {gamma}")
    if max(num_reqs, 1) * (gamma + 1) > MAX_VERIFY_ROWS:
        raise ValueError(f"B·N: expected at most {MAX_VERIFY_ROWS} rows, got {num_reqs}·{gamma + 1}")


def values_known(t: Tensor) -> bool:
    """Whether to check the values of t: only with DSPARK_CHECK=1, and never while a fake tensor stands for it."""
    return VALUE_CHECKS and type(t) is Tensor and not torch.compiler.is_compiling()
