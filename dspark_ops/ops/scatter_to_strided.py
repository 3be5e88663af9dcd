"""`scatter_to_strided`: compact rows into N rows per request (DESIGN 3.8)."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.scatter_to_strided import scatter_to_strided as reference
from ._fill import Fill, check_move, check_rows, fill_bits


def _check(compact: Tensor, cu_seqlens: Tensor, width: int, fill: int, strided: Tensor) -> None:
    check_rows("compact", compact)
    _checks.tensor("cu_seqlens", cu_seqlens, torch.int32, ["B + 1"], compact.device)
    _checks.integer("width", width, 1, _checks.MAX_VERIFY_ROWS)
    rows = (cu_seqlens.shape[0] - 1) * width
    if rows > _checks.MAX_VERIFY_ROWS:
        raise ValueError(f"B·N: expected at most {_checks.MAX_VERIFY_ROWS} rows, got {rows}")
    check_move("compact", compact, cu_seqlens, strided, rows)


_op = operator(
    "scatter_to_strided(Tensor compact, Tensor cu_seqlens, int width, int fill, Tensor(a!) strided) -> ()",
    reference,
    _check,
)


def scatter_to_strided(
    compact: Tensor, cu_seqlens: Tensor, width: int, fill: Fill = 0, *, out: Tensor | None = None
) -> Tensor:
    """Spread the rows of a compact batch to N rows per request.

    ``out[i·N + k] = compact[cu[i] + k]`` for ``k < min(cu[i + 1] - cu[i], N)``, and the fill elsewhere. Bytes are
    moved, not interpreted: the result has the very bits of the source. A row outside the compact buffer reads as the
    fill.

    Args:
        compact: [R, ...] of any dtype.
        cu_seqlens: int32 [B + 1], as `ragged_layout` returns it.
        width: N, rows per request in the result; B·N <= 2^18.
        fill: number for the rows without a source, rounded to a floating dtype and exact in any other; only 0 for a
            dtype wider than 8 bytes.
        out: [B·N, ...] to write into, of compact's dtype.

    Returns:
        [B·N, ...].

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device, range or fill, naming the argument.

    Capture: width and fill are fixed; the tensors may change on replay.

    Source: written for this package (DESIGN 3.8).
    """
    check_rows("compact", compact)
    check_rows("cu_seqlens", cu_seqlens)
    _checks.integer("width", width, 1, _checks.MAX_VERIFY_ROWS)
    if out is None:
        out = compact.new_empty([max(cu_seqlens.shape[0] - 1, 0) * width, *compact.shape[1:]])
    bits = fill_bits(fill, compact.dtype)
    _op(compact, cu_seqlens, width, bits, out)
    return out
