"""Device code: confidences or calibrated logits, and what runs along k from left to right.

Shapes are the caller's: r and what is loaded per request is [B, 1], k is [1, K], a block of confidences [B, K]. Nothing
here is contracted to an FMA if the kernel is launched with `EXACT`. The product cannot be a scan: a scan is free to
associate, and then its bits are not those of a product taken from left to right. Instead each step picks one column by
a maximum over k, which is exact, and which costs shuffles at most, since a row lies within one warp.
"""

from __future__ import annotations

import triton
import triton.language as tl

UNROLLED = tl.constexpr(16)
SMALLEST = tl.constexpr(7.8886090522101181e-31)  # 2^-100: products below it are +0


@triton.jit
def unit_interval(x):
    """NaN and -0 become 0, everything else is clamped to [0, 1]."""
    return tl.where(x > 0.0, tl.where(x < 1.0, x, 1.0), 0.0)


@triton.jit
def widen(x):
    """Exactly. bfloat16 by its bits: Triton's interpreter converts its subnormals to something else."""
    if x.dtype == tl.bfloat16:
        x = (x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16).to(tl.float32, bitcast=True)
    else:
        x = x.to(tl.float32)
    return x


@triton.jit
def sigmoid(x):
    """In double, so that it is right to half a unit in the last place of float32; NaN stays NaN."""
    c = (1.0 / (1.0 + tl.exp(-x.to(tl.float64)))).to(tl.float32)
    return tl.where(c < SMALLEST, 0.0, c)


@triton.jit
def row_of(slots, r, inside, rows):
    """The row of each request in a table of so many rows, and whether it lies in it."""
    row = r.to(tl.int64)
    if slots is not None:
        row = tl.load(slots + r, mask=inside, other=-1).to(tl.int64)
    return row, inside & (row >= 0) & (row < rows)


@triton.jit
def calibrate(z, k, gamma, r, inside, scale, bias, offset, offset_slots, offset_rows):
    """c = sigmoid(scale_k * z + bias_k + offset_r), each operation rounded to float32."""
    if scale is not None:
        z = tl.load(scale + k, mask=k < gamma, other=1.0) * z
    if bias is not None:
        z = z + tl.load(bias + k, mask=k < gamma, other=0.0)
    if offset is not None:
        slot, known = row_of(offset_slots, r, inside, offset_rows)
        z = z + tl.load(offset + slot, mask=known, other=0.0)
    return sigmoid(z)


@triton.jit
def is_fresh(r, inside, row, known, fresh, generation, expected):
    """Whether each request's row is there and its own."""
    if fresh is not None:
        known = known & (tl.load(fresh + r, mask=inside, other=0) != 0)
    if generation is not None:
        want = tl.load(expected + r, mask=inside, other=0)
        known = known & (want >= 1) & (tl.load(generation + row, mask=known, other=0) == want)
    return known


@triton.jit
def load_confidence(
    values, slots, rows, scale, bias, offset, offset_slots, offset_rows, fresh, generation, expected,
    r, inside, k, gamma, IS_LOGITS: tl.constexpr, OPTIMISTIC: tl.constexpr,
):  # fmt: skip
    """c in [0, 1]: 0 where there is no row; with OPTIMISTIC 1 where there is none or it is not fresh."""
    row, known = row_of(slots, r, inside, rows)
    c = widen(tl.load(values + row * gamma + k, mask=known & (k < gamma), other=0.0))
    if IS_LOGITS:
        c = calibrate(c, k, gamma, r, inside, scale, bias, offset, offset_slots, offset_rows)
    c = tl.where(known, unit_interval(c), 0.0)
    if OPTIMISTIC:
        c = tl.where(is_fresh(r, inside, row, known, fresh, generation, expected), c, 1.0)
    return c


@triton.jit
def _next_column(s, c, k, j, prefix, MINIMUM: tl.constexpr):
    column = tl.max(tl.where(k == j, c, 0.0), axis=1, keep_dims=True)
    if MINIMUM:
        prefix = tl.minimum(prefix, column)
    else:
        prefix = prefix * column
        prefix = tl.where(prefix < SMALLEST, 0.0, prefix)
    return tl.where(k == j, prefix, s), prefix


@triton.jit
def running(c, k, columns, prefix, K: tl.constexpr, MINIMUM: tl.constexpr):
    """Product (or minimum) of the columns of c from left to right, going on from `prefix` [B, 1]; also the last one.

    k counts the columns of this block from 0; `columns` of its K are real. The products are unrolled while K is small:
    the columns are then picked beside the chain. Unrolled rows of 32 would keep 32 masks in registers.
    """
    s = tl.zeros_like(c)
    if K <= UNROLLED and not MINIMUM:
        for j in tl.static_range(K):
            s, prefix = _next_column(s, c, k, j, prefix, MINIMUM)
    else:
        for j in range(columns):
            s, prefix = _next_column(s, c, k, j, prefix, MINIMUM)
    return s, prefix
