"""`accept_greedy`: greedy acceptance within the verify lengths, and everything the step commits (DESIGN 3.9)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .._registry import operator
from ..reference.accept_greedy import accept_greedy as reference
from ._accepted import OUTPUTS, Accepted, check_commit, check_drafts, check_target, workspace


def _check(
    draft_tokens: Tensor,
    target_tokens: Tensor,
    verify_lens: Tensor,
    prefix: Tensor | None,
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
    check_target(target_tokens, cu_seqlens, batch, gamma + 1, draft_tokens.device)
    check_commit(draft_tokens, verify_lens, prefix, confidence, slots, decay, eta, limit, offset, Accepted(*out))


_op = operator(
    "accept_greedy(Tensor draft_tokens, Tensor target_tokens, Tensor verify_lens, Tensor? prefix, Tensor? cu_seqlens, "
    f"Tensor? confidence, Tensor? slots, float decay, float eta, float limit, {OUTPUTS}) -> ()",
    reference,
    _check,
)


def accept_greedy(
    draft_tokens: Tensor,
    target_tokens: Tensor,
    verify_lens: Tensor,
    prefix: Tensor | None = None,
    *,
    cu_seqlens: Tensor | None = None,
    offset: Tensor | None = None,
    confidence: Tensor | None = None,
    slots: Tensor | None = None,
    decay: float = 1.0,
    eta: float = 0.1,
    limit: float = 4.0,
    out: Accepted | None = None,
) -> Accepted:
    """Accept drafts while they equal the target's own choice, no further than each verify length.

    ``raw`` is the length of the prefix where draft k equals the target token at row k; ``correct = min(raw, l - 1)``,
    ``trimmed = raw - correct``, the bonus is the target token at row ``correct``, ``commit_len = correct + 1`` and
    ``new_seq_len = prefix + commit_len``. A request with l = 0 commits nothing: all its outputs are 0 and
    ``new_seq_len = prefix``. With one plan, the strided form (cap-accept) and the compact form commit the same tokens.

    Args:
        draft_tokens: int64 [B, γ].
        target_tokens: the target's choice after each verified row, int64. Strided [B, N] or [B·N] (N = γ + 1), or, with
            `cu_seqlens`, compact [R]: row k of request r is ``cu_seqlens[r] + k``.
        verify_lens: l, int32 [B], root included; clamped to [0, N].
        prefix: int32 or int64 [B], cached tokens, the root excluded; clamped to [0, 2^31 - 1].
        cu_seqlens: int32 [B + 1]. Rows past l - 1 were never computed, so ``trimmed`` is then 0. A row outside [0, R)
            is a mismatch, and a bonus from there is 0.
        offset, confidence, slots, decay, eta, limit: with `offset`, the same launch also does `update_offset`, in
            place, with the accepted lengths; `confidence` must then be given.
        out: an `Accepted` to write into (contiguous; new_seq_len iff prefix is given).

    Returns:
        `Accepted`: correct_len, trimmed, bonus, commit_len, new_seq_len, out_tokens.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Graph capture: every tensor may change on replay; decay, eta and limit are baked in.

    Source: greedy verification of speculative decoding; the cut at l - 1 is DSpark's (DESIGN 3.9).
    """
    out = workspace(out, draft_tokens, prefix)
    args = (draft_tokens, target_tokens, verify_lens, prefix, cu_seqlens)
    _op(*args, confidence, slots, decay, eta, limit, offset, *out)
    return out
