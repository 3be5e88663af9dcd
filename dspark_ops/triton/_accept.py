"""The kernel of `accept_greedy` and `finalize_accept`: from tokens or raw lengths to all that a step commits.

One launch over blocks of requests, with the learning of the offset inside it; bound by its launch. The token ids of a
request are a row of the block, read once and written once (16 to 24·B·N bytes); a row longer than the block is taken
piece by piece, since the accepted length is a minimum, which needs no order.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ._counting import saturate
from ._launch import EXACT, cdiv, contiguous, jit, padded
from ._learning import learn

TILE = 512  # token ids of one program


@triton.jit
def _target(target_tokens, start, row, inside, target_rows):
    """Target tokens at `row` of requests that start at `start`, and whether there are such; 0 where there are none."""
    index = start + row
    there = inside & (index >= 0) & (index < target_rows)
    return tl.load(target_tokens + index, mask=there, other=0), there


@triton.jit
def _accepted(draft_tokens, target_tokens, start, r, computed, gamma, target_rows, COLUMNS: tl.constexpr):
    """Length of the prefix of drafts that equal the target's own choice, among the first `computed`."""
    raw = computed
    for first in range(0, gamma, COLUMNS):
        k = (first + tl.arange(0, COLUMNS))[None, :]
        inside = k < computed[:, None]
        token, there = _target(target_tokens, start[:, None], k, inside, target_rows)
        draft = tl.load(draft_tokens + r[:, None] * gamma + k, mask=inside, other=0)
        wrong = tl.where(inside & ((there == 0) | (token != draft)), k, gamma)
        raw = tl.minimum(raw, tl.min(wrong, 1))
    return raw


@triton.jit
def _write_tokens(draft_tokens, out_tokens, r, inside, active, correct, bonus, gamma, COLUMNS: tl.constexpr):
    for first in range(0, gamma + 1, COLUMNS):
        k = (first + tl.arange(0, COLUMNS))[None, :]
        drafts = active[:, None] & (k < gamma)
        token = tl.load(draft_tokens + r[:, None] * gamma + k, mask=drafts, other=0)
        token = tl.where(active[:, None] & (k == correct[:, None]), bonus[:, None], token)
        tl.store(out_tokens + r[:, None] * (gamma + 1) + k, token, mask=inside[:, None] & (k <= gamma))


@jit
def _accept_kernel(
    raw_correct_len, draft_tokens, verify_lens, prefix, bonus_tokens, target_tokens, cu_seqlens, confidence, slots,
    offset, correct_len, trimmed, bonus, commit_len, new_seq_len, out_tokens,
    batch, gamma, target_rows, num_slots, decay: tl.float32, eta: tl.float32, limit: tl.float32,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = r < batch
    verify_len = tl.load(verify_lens + r, mask=inside, other=0)
    verify_len = tl.minimum(tl.maximum(verify_len, 0), gamma + 1)
    active = verify_len > 0
    start = r * (gamma + 1)
    if cu_seqlens is not None:
        start = tl.load(cu_seqlens + r, mask=inside, other=0).to(tl.int64)
    if raw_correct_len is not None:
        raw = tl.load(raw_correct_len + r, mask=inside, other=0)
        raw = tl.minimum(tl.maximum(raw, 0), gamma)
    else:
        computed = tl.where(inside, gamma, 0)
        if cu_seqlens is not None:
            # Rows past l - 1 were never computed; what lies there belongs to another request.
            computed = tl.minimum(tl.maximum(verify_len - 1, 0), gamma)
        raw = _accepted(draft_tokens, target_tokens, start, r, computed, gamma, target_rows, COLUMNS)

    correct = tl.where(active, tl.minimum(raw, verify_len - 1), 0)
    committed = tl.where(active, correct + 1, 0)
    if bonus_tokens is not None:
        following = tl.load(bonus_tokens + r, mask=active, other=0)
    else:
        following, _ = _target(target_tokens, start, correct, active, target_rows)
    tl.store(correct_len + r, correct, mask=inside)
    cut = tl.where(active, raw - correct, 0)
    if cu_seqlens is not None:
        cut = tl.zeros_like(raw)  # the compact form never computed the rows that a cut would take
    tl.store(trimmed + r, cut, mask=inside)
    tl.store(bonus + r, following, mask=inside)
    tl.store(commit_len + r, committed, mask=inside)
    if new_seq_len is not None:
        s = saturate(tl.load(prefix + r, mask=inside, other=0).to(tl.int64))
        length = saturate(s + committed).to(new_seq_len.dtype.element_ty)
        tl.store(new_seq_len + r, length, mask=inside)
    _write_tokens(draft_tokens, out_tokens, r, inside, active, correct, following, gamma, COLUMNS)
    if offset is not None:
        learn(confidence, slots, offset, r, correct, verify_len, gamma, num_slots, decay, eta, limit)


def launch(
    raw_correct_len: Tensor | None,
    draft_tokens: Tensor,
    verify_lens: Tensor,
    prefix: Tensor | None,
    bonus_tokens: Tensor | None,
    target_tokens: Tensor | None,
    cu_seqlens: Tensor | None,
    confidence: Tensor | None,
    slots: Tensor | None,
    decay: float,
    eta: float,
    limit: float,
    offset: Tensor | None,
    outputs: tuple[Tensor | None, ...],
) -> None:
    """Without raw lengths the acceptance is greedy; without a bonus the target's tokens give it."""
    batch, gamma = draft_tokens.shape
    inputs = (
        raw_correct_len, draft_tokens, verify_lens, prefix, bonus_tokens, target_tokens, cu_seqlens, confidence, slots,
    )  # fmt: skip
    columns = min(TILE, padded(gamma + 1, 2))
    rows = TILE // columns
    _accept_kernel[(cdiv(batch, rows),)](
        *(contiguous(t) for t in inputs), offset, *outputs, batch, gamma,
        0 if target_tokens is None else target_tokens.numel(), 0 if offset is None else offset.shape[0],
        decay, eta, limit, ROWS=rows, COLUMNS=columns, **EXACT,
    )  # fmt: skip
