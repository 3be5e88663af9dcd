"""From a plan to the shapes that vLLM's model runner carries. Imports nothing of vLLM.

A batch of vLLM mixes decoding requests with pieces of prompts, and its buffers are as long as its largest batch. What
it has is given to `allocate_verify_lens` like this: confidences by request state with ``slots=idx_mapping``, the drafts
scheduled for a request as ``caps = drafts + 1`` (1 for a piece of a prompt: one row of logits), the draft budget as
``budget=``. Then every verified row is a row of logits (`cu_num_logits`), and what a request runs beside its drafts
adds to the query (`query_start_loc`). Each function is a few torch operators on the device of its input, and never
synchronises.

Source: the adaptive verification of vLLM's second model runner (pull request 47808).
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _checks


def query_start_loc(
    cu_seqlens: Tensor, max_num_reqs: int, *, num_non_draft_tokens: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """Offsets in a buffer of full length, its tail filled with the last one: padding requests own no rows.

    Request r runs ``max(l_r - 1, 0)`` drafts and its ``num_non_draft_tokens``. Attention kernels demand offsets that
    never decrease, up to the end of the buffer.

    Args:
        cu_seqlens: int32 [B + 1], as `allocate_verify_lens` returns it: running sum of l.
        max_num_reqs: requests the buffer is made for, at least B.
        num_non_draft_tokens: int32 [B]: 1 for a decoding request (its root), the length of a piece of a prompt, 0 for
            a request that does not run. None: every request that runs decodes, and the offsets are cu_seqlens.
        out: int32 [max_num_reqs + 1] to write into.

    Returns:
        int32 [max_num_reqs + 1].
    """
    _checks.tensor("cu_seqlens", cu_seqlens, torch.int32, ["B + 1"])
    used = cu_seqlens.shape[0]
    _checks.integer("max_num_reqs", max_num_reqs, used - 1, _checks.MAX_VERIFY_ROWS)
    _checks.optional("num_non_draft_tokens", num_non_draft_tokens, torch.int32, [used - 1], cu_seqlens.device)
    if out is None:
        out = cu_seqlens.new_empty(max_num_reqs + 1)
    else:
        _checks.output("out", out, torch.int32, [max_num_reqs + 1], cu_seqlens.device)
    out[:used] = cu_seqlens
    if num_non_draft_tokens is not None:
        rows = num_draft_tokens(cu_seqlens.diff()) + num_non_draft_tokens
        torch.cumsum(rows, 0, dtype=torch.int32, out=out[1:used])
    out[used:] = out[used - 1]
    return out


def cu_num_logits(cu_seqlens: Tensor) -> Tensor:
    """Running count of the rows of logits: every verified row is one, so it is `cu_seqlens` itself."""
    _checks.tensor("cu_seqlens", cu_seqlens, torch.int32, ["B + 1"])
    return cu_seqlens


def num_draft_tokens(verify_lens: Tensor) -> Tensor:
    """Drafts to verify per request, int32 [B]: the verify length without the root, 0 for an inactive request."""
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    return (verify_lens - 1).clamp(min=0)


def num_rejected_tokens(verify_lens: Tensor, commit_len: Tensor) -> Tensor:
    """Verified rows whose tokens were not committed, int32 [B]: what the next step takes off the scheduled lengths.

    0 for a piece of a prompt, whose one row of logits counts as committed whether its token is kept or not.
    """
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    _checks.tensor("commit_len", commit_len, torch.int32, list(verify_lens.shape), verify_lens.device)
    return verify_lens - commit_len
