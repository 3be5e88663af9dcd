"""A fill value as the bit pattern that `scatter_to_strided` and `gather_from_strided` take."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .. import _checks

Fill = bool | int | float | complex


@lru_cache(maxsize=256)
def _encode(spelling: str, kind: type, dtype: torch.dtype) -> int:
    """Cached by spelling, since 0.0 == -0.0 and 1 == True as keys, and NaN equals nothing."""
    value: Fill = spelling == "True" if kind is bool else kind(spelling)
    if isinstance(value, complex) and not dtype.is_complex:
        raise ValueError(f"fill: expected a real number for {dtype}, got {value}")
    try:
        with _disable_current_modes():  # a fake tensor would have no bytes
            one = torch.tensor([value], dtype=dtype)
            exact = dtype.is_floating_point or dtype.is_complex or one.item() == value
            pattern = one.view(torch.uint8).tolist()
    except (RuntimeError, ValueError, OverflowError, NotImplementedError) as error:
        raise ValueError(f"fill: expected a value of {dtype}, got {value!r} ({error})") from None
    if not exact:
        raise ValueError(f"fill: expected a value of {dtype}, got {value!r}")
    words = {int.from_bytes(bytes(pattern[i : i + 8]), sys.byteorder, signed=True) for i in range(0, len(pattern), 8)}
    if len(pattern) > 8 and words != {0}:
        raise ValueError(f"fill: expected 0 for {dtype}, whose elements are wider than a fill; got {value!r}")
    return words.pop()


def _constant_bits(fill: Fill, dtype: torch.dtype) -> int:
    kind: Any = next(kind for kind in (bool, int, float, complex) if isinstance(fill, kind))
    return _encode(repr(kind(fill)), kind, dtype)


# As torch.compiler.assume_constant_result marks it, which imports the whole compiler: two seconds for every process.
vars(_constant_bits)["_dynamo_marked_constant"] = True


def fill_bits(fill: Fill, dtype: torch.dtype) -> int:
    """The bytes of one element as a signed int; floats round to nearest, anything else must be exact."""
    if not isinstance(fill, bool | int | float | complex):
        raise TypeError(f"fill: expected a number, got {type(fill).__name__}")
    # Under torch.compile 0.0 and -0.0 are one constant: the first of them that is compiled holds for both.
    # torch.compile may trace a number as a symbol; as an element of a set it is a constant.
    return _constant_bits(next(iter({fill})), dtype)


def check_rows(name: str, t: torch.Tensor) -> None:
    """Require a tensor of rows: at least one dimension."""
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(t).__name__}")
    if t.dim() == 0:
        raise ValueError(f"{name}: expected shape [rows, ...], got []")


def check_move(
    name: str, source: torch.Tensor, cu_seqlens: torch.Tensor, out: torch.Tensor, out_rows: int | str
) -> None:
    """The checks that both moves share: offsets, and an output with the source's dtype and row shape."""
    check_rows(name, source)
    check_rows("out", out)
    _checks.tensor("cu_seqlens", cu_seqlens, torch.int32, ["B + 1"], source.device)
    if cu_seqlens.shape[0] < 1:
        raise ValueError("cu_seqlens: expected B + 1 values, got none")
    _checks.output("out", out, source.dtype, [out_rows, *source.shape[1:]], source.device)
