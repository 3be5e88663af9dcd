"""`finalize_accept` in Triton: one launch of the kernel in `_accept`."""

from __future__ import annotations

from torch import Tensor

from ._accept import launch


def finalize_accept(
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
    *outputs: Tensor | None,
) -> None:
    launch(
        raw_correct_len, draft_tokens, verify_lens, prefix, bonus_tokens, target_tokens, cu_seqlens, confidence, slots,
        decay, eta, limit, offset, outputs,
    )  # fmt: skip
