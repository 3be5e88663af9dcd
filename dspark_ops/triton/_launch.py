"""What the launchers share."""

from __future__ import annotations

import triton
from torch import Tensor


def contiguous(t: Tensor | None) -> Tensor | None:
    """Kernels address dense rows; a strided input is copied on its device."""
    return t if t is None else t.contiguous()


def cdiv(a: int, b: int) -> int:
    """Blocks of b that cover a, at least one: an empty grid is not a launch."""
    return max(1, triton.cdiv(a, b))
