"""`gather_from_strided`: N rows per request into compact rows (DESIGN 3.8)."""

from __future__ import annotations

from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.gather_from_strided import gather_from_strided as reference
from ._fill import Fill, check_move, check_rows, fill_bits


def _check(strided: Tensor, cu_seqlens: Tensor, fill: int, compact: Tensor) -> None:
    check_move("strided", strided, cu_seqlens, compact, "R")
    batch = cu_seqlens.shape[0] - 1
    rows = strided.shape[0]
    if (rows != 0) if batch == 0 else (rows % batch != 0):
        raise ValueError(f"strided: expected the same number of rows for each of {batch} requests, got {rows} rows")
    if rows > _checks.MAX_VERIFY_ROWS:
        raise ValueError(f"B·N: expected at most {_checks.MAX_VERIFY_ROWS} rows, got {rows}")


_op = operator(
    "gather_from_strided(Tensor strided, Tensor cu_seqlens, int fill, Tensor(a!) compact) -> ()",
    reference,
    _check,
)


def gather_from_strided(
    strided: Tensor, cu_seqlens: Tensor, rows: int, fill: Fill = 0, *, out: Tensor | None = None
) -> Tensor:
    """Collect the rows of a compact batch from N rows per request; the inverse of `scatter_to_strided`.

    ``out[t] = strided[i·N + t - cu[i]]`` for a row t < R of request i (``cu[i] <= t < cu[i + 1]``) with
    ``t - cu[i] < N``, and the fill elsewhere, so on padding rows too. Bytes are moved, not interpreted.

    Args:
        strided: [B·N, ...] of any dtype, B·N <= 2^18.
        cu_seqlens: int32 [B + 1], as `ragged_layout` returns it. If it decreases somewhere (it should not), a row
            belongs to the request that bisection finds: low, high = 0, B; while low < high, middle = (low + high) // 2
            and low = middle + 1 if cu[middle + 1] <= t, else high = middle.
        rows: R, rows of the result.
        fill: number for the rows without a source, rounded to a floating dtype and exact in any other; only 0 for a
            dtype wider than 8 bytes.
        out: [R, ...] to write into, of strided's dtype.

    Returns:
        [R, ...].

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device, range or fill, naming the argument.

    Capture: rows and fill are fixed; the tensors may change on replay.

    Source: written for this package (DESIGN 3.8).
    """
    check_rows("strided", strided)
    _checks.integer("rows", rows, 0, (1 << 31) - 1)
    if out is None:
        out = strided.new_empty([rows, *strided.shape[1:]])
    else:
        _checks.output("out", out, strided.dtype, [rows, *strided.shape[1:]], strided.device)
    bits = fill_bits(fill, strided.dtype)
    _op(strided, cu_seqlens, bits, out)
    return out
