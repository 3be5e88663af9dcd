"""What `accept_greedy` and `finalize_accept` share: their result, its allocation, and the checks."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .. import _checks
from .update_offset import check_learning


class Accepted(NamedTuple):
    """The outcome of a verify step (DESIGN 3.9). Where l = 0 all is 0, and the sequence length stays."""

    correct_len: Tensor
    """int32 [B]: accepted drafts, at most l - 1."""
    trimmed: Tensor
    """int32 [B]: drafts that the acceptance rule took but the verify length cut off."""
    bonus: Tensor
    """int64 [B]: the target's token after the accepted drafts."""
    commit_len: Tensor
    """int32 [B]: tokens the step adds, the bonus included."""
    new_seq_len: Tensor | None
    """dtype of prefix, [B]: prefix + commit_len, at most 2^31 - 1; None without prefix."""
    out_tokens: Tensor
    """int64 [B, N]: drafts, then 0, with the bonus at column correct_len; the first commit_len are committed."""


OUTPUTS = (
    "Tensor(a!)? offset, Tensor(b!) correct_len, Tensor(c!) trimmed, Tensor(d!) bonus, Tensor(e!) commit_len, "
    "Tensor(f!)? new_seq_len, Tensor(g!) out_tokens"
)


def workspace(out: Accepted | None, draft_tokens: Tensor, prefix: Tensor | None) -> Accepted:
    """`out`, or uninitialised outputs for these drafts; every element gets written."""
    if out is not None:
        _checks.result("out", out, Accepted)
        return out
    check_drafts(draft_tokens)
    if prefix is not None:
        _checks.rank("prefix", prefix, ["B"])
    batch, gamma = draft_tokens.shape
    device = draft_tokens.device
    return Accepted(
        correct_len=torch.empty(batch, dtype=torch.int32, device=device),
        trimmed=torch.empty(batch, dtype=torch.int32, device=device),
        bonus=torch.empty(batch, dtype=torch.int64, device=device),
        commit_len=torch.empty(batch, dtype=torch.int32, device=device),
        new_seq_len=None if prefix is None else torch.empty(batch, dtype=prefix.dtype, device=device),
        out_tokens=torch.empty(batch, gamma + 1, dtype=torch.int64, device=device),
    )


def check_drafts(draft_tokens: Tensor) -> None:
    """Check the tensor that gives B, γ and the device."""
    _checks.tensor("draft_tokens", draft_tokens, torch.int64, ["B", "γ"])
    _checks.verify_width(*draft_tokens.shape)


def check_target(
    target_tokens: Tensor, cu_seqlens: Tensor | None, batch: int, width: int, device: torch.device
) -> None:
    """Target tokens are strided, [B, N] or [B·N], or with cu_seqlens compact, [R]."""
    if cu_seqlens is not None:
        _checks.tensor("target_tokens", target_tokens, torch.int64, ["R"], device)
        _checks.tensor("cu_seqlens", cu_seqlens, torch.int32, [batch + 1], device)
    elif isinstance(target_tokens, Tensor) and target_tokens.dim() == 1:
        _checks.tensor("target_tokens", target_tokens, torch.int64, [batch * width], device)
    else:
        _checks.tensor("target_tokens", target_tokens, torch.int64, [batch, width], device)


def check_commit(
    draft_tokens: Tensor,
    verify_lens: Tensor,
    prefix: Tensor | None,
    confidence: Tensor | None,
    slots: Tensor | None,
    decay: float,
    eta: float,
    limit: float,
    offset: Tensor | None,
    out: Accepted,
) -> None:
    """The checks on all other arguments."""
    batch, gamma = draft_tokens.shape
    device = draft_tokens.device
    _checks.tensor("verify_lens", verify_lens, torch.int32, [batch], device)
    _checks.optional("prefix", prefix, _checks.INDEX_DTYPES, [batch], device)
    if offset is not None:
        if confidence is None:
            raise ValueError("confidence: expected a tensor, since offset is given and learns from it; got None")
        check_learning(confidence, slots, decay, eta, limit, offset, batch, gamma, device)
    elif confidence is not None or slots is not None:
        name = "slots" if confidence is None else "confidence"
        raise ValueError(f"{name}: expected None, since no offset is given that would use it; got a tensor")
    for name, dtype in (("correct_len", torch.int32), ("trimmed", torch.int32), ("commit_len", torch.int32)):
        _checks.output(f"out.{name}", getattr(out, name), dtype, [batch], device)
    _checks.output("out.bonus", out.bonus, torch.int64, [batch], device)
    if (prefix is None) != (out.new_seq_len is None):
        expected, got = ("None", "a tensor") if prefix is None else ("a tensor", "None")
        raise ValueError(f"out.new_seq_len: expected {expected}, as prefix is {got_text(prefix)}; got {got}")
    if prefix is not None and out.new_seq_len is not None:
        _checks.output("out.new_seq_len", out.new_seq_len, prefix.dtype, [batch], device)
    _checks.output("out.out_tokens", out.out_tokens, torch.int64, [batch, gamma + 1], device)


def got_text(argument: Tensor | None) -> str:
    """How an error names an optional argument."""
    return "None" if argument is None else "given"
