"""What the launchers share."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import triton
from torch import Tensor

# The survival product and the calibration are products and sums of their own: nothing may be contracted to an FMA.
EXACT = {"enable_fp_fusion": False}


def jit(fn: Any, aligned: Collection[str] = ()) -> Any:
    """A kernel that is compiled once per argument form: which tensors are there, their dtypes, and the constexprs.

    Triton would also compile anew when an int becomes 1 or a multiple of 16, or a pointer is aligned differently: a
    batch size, a budget or a slice of a workspace that changes in every step would then cost a compilation each.
    Only the alignment of the pointers named in `aligned` is looked at.
    """
    parameters = inspect.signature(fn).parameters.values()
    values = [p.name for p in parameters if "constexpr" not in str(p.annotation) and p.name not in aligned]
    return triton.jit(do_not_specialize=values, do_not_specialize_on_alignment=values)(fn)


def padded(n: int, least: int) -> int:
    """The power of two that holds n, at least `least`."""
    return max(least, triton.next_power_of_2(n))


def contiguous(t: Tensor | None) -> Tensor | None:
    """Kernels address dense rows; a strided input is copied on its device."""
    return t if t is None else t.contiguous()


def cdiv(a: int, b: int) -> int:
    """Blocks of b that cover a, at least one: an empty grid is not a launch."""
    return max(1, triton.cdiv(a, b))
