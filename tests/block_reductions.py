"""A kernel whose results depend on how the interpreter reduces: the exact argmax, and a sort."""

from __future__ import annotations

import triton
import triton.language as tl

from dspark_ops.triton._search import best_ratio


@triton.jit
def kernel(tau, t, keys, best, ordered, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = best_ratio(tl.load(tau + i), tl.load(t + i), i)
    tl.store(best, a)
    tl.store(best + 1, b.to(tl.int64))
    tl.store(best + 2, c.to(tl.int64))
    tl.store(ordered + i, tl.sort(tl.load(keys + i), descending=True))
