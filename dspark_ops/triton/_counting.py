"""Which request owns which place, from lengths alone: what the layout kernels share.

Request i owns the places ends[i - 1] .. ends[i] - 1, `ends` being the running sum of the lengths. A program that covers
TILE places needs no search and no memory for `ends`: it runs over the lengths once, and counts the ends by the place of
its tile that they fall on. The owner of a place is then the number of ends up to it (a running sum of the counts), and
the owner's first place is the last end up to it (a running maximum). That is O(B + TILE) work for any B, against
O(TILE · log B) dependent loads for a search in `ends`, which would have to be written first, by another launch or by
every program; comparing each place with each end would be O(B · TILE).
"""

from __future__ import annotations

import triton
import triton.language as tl

INT32_MAX = tl.constexpr(2147483647)
PLACES = 512  # of one program


def chunk(batch: int) -> int:
    """Requests taken at a time: two compiled variants, and no limit on the batch."""
    return 128 if batch <= 128 else 1024


@triton.jit
def saturate(x):
    """An int64 clamped to [0, 2^31 - 1]."""
    return tl.minimum(tl.maximum(x, 0), INT32_MAX)


@triton.jit
def total_of(lens, batch, CHUNK: tl.constexpr):
    """Sum of the lengths, in which a negative one counts as 0."""
    lanes = tl.zeros([CHUNK], tl.int64)
    for first in range(0, batch, CHUNK):
        i = first + tl.arange(0, CHUNK)
        lanes += tl.maximum(tl.load(lens + i, mask=i < batch, other=0), 0).to(tl.int64)
    return tl.sum(lanes, 0)


@triton.jit
def count_ends(ends, valid, first_place, counts, before, start, TILE: tl.constexpr):
    """Add a chunk of ends to the counts per place, to the number of ends before the tile, and to the last of those."""
    ahead = ends - first_place
    counts += tl.histogram(ahead.to(tl.int32), TILE, mask=valid & (ahead >= 0) & (ahead < TILE))
    earlier = valid & (ahead < 0)
    before += tl.sum(earlier.to(tl.int32), 0)
    start = tl.maximum(start, tl.max(tl.where(earlier, ends, 0), 0))
    return counts, before, start


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def owners(place, counts, before, start):
    """Owner of each place, and the owner's first place."""
    owner = before + tl.cumsum(counts, 0)
    return owner, tl.associative_scan(tl.where(counts > 0, place, start), 0, _larger)
