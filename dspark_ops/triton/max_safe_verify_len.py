"""`max_safe_verify_len` in Triton: one thread per request, one launch; bound by its launch."""

from __future__ import annotations

import triton.language as tl
from torch import Tensor

from ._launch import cdiv, contiguous, jit

BLOCK = 256


@jit
def _kernel(start_pos, safe_lens, batch, ratio, coff, ring, max_verify_len, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < batch
    s = tl.load(start_pos + i, mask=inside, other=0).to(tl.int64)
    s = tl.minimum(tl.maximum(s, 0), 2147483647)
    # (s + 1) // ratio >= 0, so truncating division is floor division here and below.
    threshold_of_one = ((s + 1) // ratio - (coff - 1)) * ratio
    longest = (tl.maximum(s, threshold_of_one) // ratio + coff) * ratio - 1 - s
    longest = tl.where(ring > 0, tl.minimum(longest, ring - coff * ratio + 1), longest)
    safe = tl.minimum(tl.maximum(longest, 1), max_verify_len)
    tl.store(safe_lens + i, safe.to(tl.int32), mask=inside)


def max_safe_verify_len(
    start_pos: Tensor, ratio: int, coff: int, ring: int, max_verify_len: int, safe_lens: Tensor
) -> None:
    batch = start_pos.shape[0]
    _kernel[(cdiv(batch, BLOCK),)](
        contiguous(start_pos), safe_lens, batch, ratio, coff, ring, max_verify_len, BLOCK=BLOCK
    )
