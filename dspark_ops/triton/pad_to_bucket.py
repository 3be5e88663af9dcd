"""`pad_to_bucket` in Triton: one launch, one thread per slot; bound by its launch.

Every program sums the lengths itself: 4·B bytes, from the cache for all but the first, against a second launch.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ._counting import INT32_MAX, chunk, total_of
from ._launch import cdiv, contiguous, jit

BLOCK = 1024


@triton.jit
def padded_lens(verify_lens, i, batch, slots, slack, cap):
    """Rows that slot i owns and uses, int64; the slack is what the lengths leave of the graph's rows."""
    real = tl.maximum(tl.load(verify_lens + i, mask=i < batch, other=0), 0).to(tl.int64)
    padding = slots - batch
    takers = tl.maximum(padding, 1)
    share = slack // takers + (i - batch < slack % takers).to(tl.int64)
    last = (padding == 0) & (i == batch - 1)
    owned = tl.where(i < batch, real + tl.where(last, slack, 0), share)
    return tl.minimum(owned, cap), tl.minimum(real, cap)


@jit
def _pad_to_bucket_kernel(
    verify_lens, padded, seqused, batch, slots, rows, cap, BLOCK: tl.constexpr, CHUNK: tl.constexpr
):
    slack = tl.maximum(rows - total_of(verify_lens, batch, CHUNK), 0)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    owned, used = padded_lens(verify_lens, i, batch, slots, slack, cap)
    tl.store(padded + i, owned.to(tl.int32), mask=i < slots)
    tl.store(seqused + i, used.to(tl.int32), mask=i < slots)


def bound(cap: int) -> int:
    """The cap as a number to take the minimum with."""
    return cap if cap >= 0 else INT32_MAX.value


def pad_to_bucket(verify_lens: Tensor, rows: int, cap: int, padded: Tensor, seqused: Tensor) -> None:
    batch, slots = verify_lens.shape[0], padded.shape[0]
    _pad_to_bucket_kernel[(cdiv(slots, BLOCK),)](
        contiguous(verify_lens), padded, seqused, batch, slots, rows, bound(cap), BLOCK=BLOCK, CHUNK=chunk(batch)
    )
