"""From a plan to the shapes that vLLM's model runner carries. Imports nothing of vLLM.

vLLM counts per request the tokens it schedules, the root included, and keeps offsets in buffers that are as long as its
largest batch. Each function here is one or two torch operators on the device of its input, and never synchronises.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _checks


def query_start_loc(cu_seqlens: Tensor, max_num_reqs: int, *, out: Tensor | None = None) -> Tensor:
    """Offsets in a buffer of full length, its tail filled with the last one: padding requests own no rows.

    Attention kernels demand offsets that never decrease, up to the end of the buffer.

    Args:
        cu_seqlens: int32 [B + 1], as `allocate_verify_lens` returns it.
        max_num_reqs: requests the buffer is made for, at least B.
        out: int32 [max_num_reqs + 1] to write into.

    Returns:
        int32 [max_num_reqs + 1].
    """
    _checks.tensor("cu_seqlens", cu_seqlens, torch.int32, ["B + 1"])
    used = cu_seqlens.shape[0]
    _checks.integer("max_num_reqs", max_num_reqs, used - 1, _checks.MAX_VERIFY_ROWS)
    if out is None:
        out = cu_seqlens.new_empty(max_num_reqs + 1)
    else:
        _checks.output("out", out, torch.int32, [max_num_reqs + 1], cu_seqlens.device)
    out[:used] = cu_seqlens
    out[used:] = cu_seqlens[-1:]
    return out


def cu_num_logits(cu_seqlens: Tensor) -> Tensor:
    """Running count of the rows that need logits: every verified row does, so it is `cu_seqlens` itself."""
    _checks.tensor("cu_seqlens", cu_seqlens, torch.int32, ["B + 1"])
    return cu_seqlens


def num_draft_tokens(verify_lens: Tensor) -> Tensor:
    """Drafts to verify per request, int32 [B]: the verify length without the root, 0 for an inactive request."""
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    return (verify_lens - 1).clamp(min=0)


def num_rejected_tokens(verify_lens: Tensor, commit_len: Tensor) -> Tensor:
    """Verified rows whose tokens were not committed, int32 [B]: what the next step takes off the scheduled lengths."""
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    _checks.tensor("commit_len", commit_len, torch.int32, list(verify_lens.shape), verify_lens.device)
    return verify_lens - commit_len
