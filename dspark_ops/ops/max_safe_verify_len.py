"""`max_safe_verify_len`: lengths that partial acceptance cannot corrupt (DESIGN 3.7, state safety)."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.max_safe_verify_len import max_safe_verify_len as reference


def _check(start_pos: Tensor, ratio: int, coff: int, ring: int, max_verify_len: int, safe_lens: Tensor) -> None:
    _checks.tensor("start_pos", start_pos, _checks.INDEX_DTYPES, ["B"])
    _checks.integer("ratio", ratio, 1, 1 << 20)
    _checks.integer("coff", coff, 1, 16)
    _checks.integer("ring", ring, 0, (1 << 31) - 1)
    _checks.integer("max_verify_len", max_verify_len, 1, _checks.MAX_VERIFY_ROWS)
    _checks.output("out", safe_lens, torch.int32, [start_pos.shape[0]], start_pos.device)


_op = operator(
    "max_safe_verify_len(Tensor start_pos, int ratio, int coff, int ring, int max_verify_len, "
    "Tensor(a!) safe_lens) -> ()",
    reference,
    _check,
)


def max_safe_verify_len(
    start_pos: Tensor,
    ratio: int,
    coff: int,
    max_verify_len: int,
    *,
    ring: int | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Largest verify length per request after which every acceptance keeps the compressor's state.

    In explicit-row form the compressor saves only rows at or past
    ``th(l) = (floor((s + l) / ratio) - (coff - 1)) * ratio``. A length l is safe iff ``th(l) <= max(s, th(1))``: the
    root is always committed, so l = 1 always is. With a state ring, ``l <= ring - coff * ratio + 1`` must hold too.
    The result is meant for the ``caps`` of `allocate_verify_lens`.

    Args:
        start_pos: s, int32 or int64 [B]: cached tokens, the root excluded; clamped to [0, 2^31 - 1].
        ratio: tokens per compressed entry (4 for C4, 128 for C128).
        coff: windows one entry reads (2 for C4, which overlaps; 1 for C128).
        max_verify_len: N, upper bound of the result.
        ring: rows of the state ring per request; None if state is not kept in a ring.
        out: int32 [B] to write into.

    Returns:
        int32 [B], each in [1, max_verify_len].

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Source: the state rule of DeepSeek-V4's compressor in its explicit-row cache mode.
    """
    _checks.rank("start_pos", start_pos, ["B"])
    if out is None:
        out = torch.empty_like(start_pos, dtype=torch.int32, memory_format=torch.contiguous_format)
    _op(start_pos, ratio, coff, 0 if ring is None else ring, max_verify_len, out)
    return out
