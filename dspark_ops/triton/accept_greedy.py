"""`accept_greedy` in Triton: one launch of the kernel in `_accept`."""

from __future__ import annotations

from torch import Tensor

from ._accept import launch


def accept_greedy(
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
    *outputs: Tensor | None,
) -> None:
    launch(
        None, draft_tokens, verify_lens, prefix, None, target_tokens, cu_seqlens, confidence, slots, decay, eta, limit,
        offset, outputs,
    )  # fmt: skip
