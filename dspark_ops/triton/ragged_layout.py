"""`ragged_layout` in Triton: one launch; bound by its launch.

Program 0 writes what there is one of per request, the others PLACES rows each, so that neither waits for the other:
every program runs over the lengths itself (4·B bytes, cached; see `_counting`). A row reads its request's prefix, root
and drafts once and writes 24 bytes. With `slots` > 0 the lengths are first padded to a bucket, for `verify_metadata`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from ._counting import INT32_MAX, PLACES, chunk, count_ends, owners, saturate, total_of
from ._launch import cdiv, contiguous, jit
from .pad_to_bucket import padded_lens


@triton.jit
def _lens(verify_lens, i, batch, slots, slack, cap, PAD: tl.constexpr):
    if PAD:
        owned, used = padded_lens(verify_lens, i, batch, slots, slack, cap)
        return tl.where(i < slots, owned, 0), used
    else:
        real = tl.maximum(tl.load(verify_lens + i, mask=i < batch, other=0), 0).to(tl.int64)
        return real, real


@triton.jit
def _per_request(
    verify_lens, prefix, padded, seqused, cu_seqlens, cache_seqlens, cu_seqlens_k,
    batch, slots, slack, cap, CHUNK: tl.constexpr, PAD: tl.constexpr,
):  # fmt: skip
    tl.store(cu_seqlens, 0)
    if cu_seqlens_k is not None:
        tl.store(cu_seqlens_k, 0)
    total = tl.zeros([], tl.int64)
    total_k = tl.zeros([], tl.int64)
    for first in range(0, slots, CHUNK):
        i = first + tl.arange(0, CHUNK)
        inside = i < slots
        owned, used = _lens(verify_lens, i, batch, slots, slack, cap, PAD)
        tl.store(cu_seqlens + 1 + i, saturate(total + tl.cumsum(owned, 0)).to(tl.int32), mask=inside)
        total += tl.sum(owned, 0)
        if PAD:
            tl.store(padded + i, owned.to(tl.int32), mask=inside)
            tl.store(seqused + i, used.to(tl.int32), mask=inside)
        if prefix is not None:
            # Clamped first so that no prefix overflows the sum; the clamped result is the exact one.
            s = tl.load(prefix + i, mask=inside, other=0).to(tl.int64)
            bound = tl.full([], 1 << 32, tl.int64)
            cached = tl.where(inside, saturate(tl.minimum(tl.maximum(s, -bound), bound) + owned), 0)
            if cache_seqlens is not None:
                tl.store(cache_seqlens + i, cached.to(tl.int32), mask=inside)
            if cu_seqlens_k is not None:
                sums = saturate(total_k + tl.cumsum(cached, 0))
                tl.store(cu_seqlens_k + 1 + i, sums.to(tl.int32), mask=inside)
                total_k += tl.sum(cached, 0)


@triton.jit
def _per_row(
    first_row, verify_lens, prefix, root_tokens, draft_tokens, row_request, row_offset, position, verify_ids,
    batch, slots, slack, cap, gamma, rows, CHUNK: tl.constexpr, TILE: tl.constexpr, PAD: tl.constexpr,
):  # fmt: skip
    counts = tl.zeros([TILE], tl.int32)
    before = tl.zeros([], tl.int32)
    start = tl.zeros([], tl.int64)
    total = tl.zeros([], tl.int64)
    for first in range(0, slots, CHUNK):
        i = first + tl.arange(0, CHUNK)
        owned, _ = _lens(verify_lens, i, batch, slots, slack, cap, PAD)
        ends = tl.minimum(total + tl.cumsum(owned, 0), INT32_MAX)
        counts, before, start = count_ends(ends, i < slots, first_row, counts, before, start, TILE)
        total += tl.sum(owned, 0)
    row = first_row + tl.arange(0, TILE)
    inside = row < rows
    owner, begin = owners(row, counts, before, start)
    taken = inside & (owner < slots)
    offset = tl.where(taken, row - begin, 0)
    tl.store(row_request + row, tl.where(taken, owner, -1), mask=inside)
    tl.store(row_offset + row, offset.to(tl.int32), mask=inside)
    if position is not None:
        s = tl.load(prefix + owner, mask=taken, other=0).to(tl.int64)
        tl.store(position + row, s + offset, mask=inside)
    if verify_ids is not None:
        root = tl.load(root_tokens + owner, mask=taken & (offset == 0), other=0)
        place = owner.to(tl.int64) * gamma + offset - 1
        draft = tl.load(draft_tokens + place, mask=taken & (offset > 0) & (offset <= gamma), other=0)
        tl.store(verify_ids + row, tl.where(offset == 0, root, draft), mask=inside)


@jit
def _ragged_layout_kernel(
    verify_lens, prefix, root_tokens, draft_tokens, padded, seqused, cu_seqlens, row_request, row_offset, position,
    verify_ids, cache_seqlens, cu_seqlens_k, batch, slots, gamma, rows, bucket_rows, cap,
    CHUNK: tl.constexpr, TILE: tl.constexpr, PAD: tl.constexpr,
):  # fmt: skip
    slack = tl.zeros([], tl.int64)
    if PAD:
        slack = tl.maximum(bucket_rows - total_of(verify_lens, batch, CHUNK), 0)
    program = tl.program_id(0)
    if program == 0:
        _per_request(
            verify_lens, prefix, padded, seqused, cu_seqlens, cache_seqlens, cu_seqlens_k,
            batch, slots, slack, cap, CHUNK, PAD,
        )  # fmt: skip
    else:
        first_row = (program - 1).to(tl.int64) * TILE
        _per_row(
            first_row, verify_lens, prefix, root_tokens, draft_tokens, row_request, row_offset, position, verify_ids,
            batch, slots, slack, cap, gamma, rows, CHUNK, TILE, PAD,
        )  # fmt: skip


def launch(
    verify_lens: Tensor,
    prefix: Tensor | None,
    root_tokens: Tensor | None,
    draft_tokens: Tensor | None,
    outputs: Sequence[Any],
    bucket: tuple[Tensor, Tensor, int, int] | None = None,
) -> None:
    """Launch the kernel; `bucket` is where the padded and used lengths go, the bucket's rows and the cap."""
    batch, rows = verify_lens.shape[0], outputs[1].shape[0]
    padded, seqused, bucket_rows, cap = bucket or (None, None, 0, 0)
    slots = batch if padded is None else padded.shape[0]
    gamma = 1 if draft_tokens is None else draft_tokens.shape[1]
    tensors = (contiguous(t) for t in (verify_lens, prefix, root_tokens, draft_tokens))
    _ragged_layout_kernel[(1 + cdiv(rows, PLACES),)](
        *tensors, padded, seqused, *outputs, batch, slots, gamma, rows, bucket_rows, cap,
        CHUNK=chunk(slots), TILE=PLACES, PAD=padded is not None,
    )  # fmt: skip


def ragged_layout(
    verify_lens: Tensor,
    prefix: Tensor | None,
    root_tokens: Tensor | None,
    draft_tokens: Tensor | None,
    *outputs: Tensor,
) -> None:
    launch(verify_lens, prefix, root_tokens, draft_tokens, outputs)
