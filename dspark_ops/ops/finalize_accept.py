"""`finalize_accept`: what a step commits after any acceptance rule (DESIGN 3.9)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.finalize_accept import finalize_accept as reference
from ._accepted import OUTPUTS, Accepted, check_commit, check_drafts, check_target, got_text, workspace


def _check(
    raw_correct_len: Tensor,
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
    *out: Any,
) -> None:
    check_drafts(draft_tokens)
    batch, gamma = draft_tokens.shape
    device = draft_tokens.device
    _checks.tensor("raw_correct_len", raw_correct_len, torch.int32, [batch], device)
    if (bonus_tokens is None) == (target_tokens is None):
        raise ValueError(
            f"bonus, target_tokens: expected exactly one of them, got bonus {got_text(bonus_tokens)} and "
            f"target_tokens {got_text(target_tokens)}"
        )
    if target_tokens is not None:
        check_target(target_tokens, cu_seqlens, batch, gamma + 1, device)
    else:
        _checks.optional("bonus", bonus_tokens, torch.int64, [batch], device)
        if cu_seqlens is not None:
            raise ValueError("cu_seqlens: expected None, since it says where target_tokens are and bonus is given")
    check_commit(draft_tokens, verify_lens, prefix, confidence, slots, decay, eta, limit, offset, Accepted(*out))


_op = operator(
    "finalize_accept(Tensor raw_correct_len, Tensor draft_tokens, Tensor verify_lens, Tensor? prefix, "
    "Tensor? bonus_tokens, Tensor? target_tokens, Tensor? cu_seqlens, "
    f"Tensor? confidence, Tensor? slots, float decay, float eta, float limit, {OUTPUTS}) -> ()",
    reference,
    _check,
)


def finalize_accept(
    raw_correct_len: Tensor,
    draft_tokens: Tensor,
    verify_lens: Tensor,
    prefix: Tensor | None = None,
    *,
    bonus: Tensor | None = None,
    target_tokens: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    offset: Tensor | None = None,
    confidence: Tensor | None = None,
    slots: Tensor | None = None,
    decay: float = 1.0,
    eta: float = 0.1,
    limit: float = 4.0,
    out: Accepted | None = None,
) -> Accepted:
    """Cut the accepted length of any acceptance rule at the verify length, and build what the step commits.

    ``correct = min(raw, l - 1)``, ``trimmed = raw - correct`` (0 in the compact form, whose rows past l - 1 were never
    computed), ``commit_len = correct + 1``, ``new_seq_len = prefix + commit_len``. A request with l = 0 commits
    nothing: all its outputs are 0 and ``new_seq_len = prefix``.

    Args:
        raw_correct_len: int32 [B], drafts the rule accepted; clamped to [0, γ].
        draft_tokens: int64 [B, γ].
        verify_lens: l, int32 [B], root included; clamped to [0, N], N = γ + 1.
        prefix: int32 or int64 [B], cached tokens, the root excluded; clamped to [0, 2^31 - 1].
        bonus: int64 [B], the token after ``correct`` drafts, as the rule drew it. Give exactly one of bonus and
            target_tokens.
        target_tokens: the bonus is the target token at row ``correct``. int64, strided [B, N] or [B·N], or, with
            `cu_seqlens`, compact [R].
        cu_seqlens: int32 [B + 1]: row k of request r is ``cu_seqlens[r] + k``. A bonus row outside [0, R) gives 0.
        offset, confidence, slots, decay, eta, limit: with `offset`, the same launch also does `update_offset`, in
            place, with the accepted lengths; `confidence` must then be given.
        out: an `Accepted` to write into (contiguous; new_seq_len iff prefix is given).

    Returns:
        `Accepted`: correct_len, trimmed, bonus, commit_len, new_seq_len, out_tokens.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Graph capture: every tensor may change on replay; decay, eta and limit are baked in.

    Source: the cap on acceptance of DSpark's confidence-scheduled verification (DESIGN 3.9).
    """
    out = workspace(out, draft_tokens, prefix)
    args = (raw_correct_len, draft_tokens, verify_lens, prefix, bonus, target_tokens, cu_seqlens)
    _op(*args, confidence, slots, decay, eta, limit, offset, *out)
    return out
