"""From a plan to the shapes that TensorRT-LLM's dynamic verification carries. Imports nothing of it.

There a captured graph is one (requests, rows) cell: every slot's window is fixed before the launch, real ones from the
plan, padding ones by position alone, and the windows sum to the graph's rows exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .. import _checks
from ..ops.ragged_layout import ragged_layout


class Windows(NamedTuple):
    """The slots of a captured graph."""

    lens: Tensor  # int32 [slots], summing to the graph's rows
    cu_seqlens: Tensor  # int32 [slots + 1]


def padding_rows(batch: int, num_slots: int) -> int:
    """Rows that padding slots take, one each: plan with ``max_rows = rows - padding_rows(...)``."""
    _checks.integer("batch", batch, 0, _checks.MAX_VERIFY_ROWS)
    _checks.integer("num_slots", num_slots, batch, _checks.MAX_VERIFY_ROWS)
    return num_slots - batch


def exact_windows(verify_lens: Tensor, caps: Tensor, rows: int, num_slots: int) -> Windows:
    """Windows of a captured cell: padding slots own one row each, and slack goes to the first requests with room.

    With ``slack = rows - (slots - B) - sum(l)``, request r gets ``min(slack left, cap_r - l_r)`` more rows in order, so
    that the windows fill the graph. Plan with `fill_tier` first: it fills the same rows with the best drafts, and the
    slack here is then what survival_eps kept out. They sum to less than `rows` where the caps leave no room, and to
    more where the plan does not fit: give it ``max_rows = rows - padding_rows(...)``.

    Args:
        verify_lens: l, int32 [B].
        caps: int32 [B], most rows of each request.
        rows: rows of the captured graph.
        num_slots: its requests, at least B.
    """
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    batch = verify_lens.shape[0]
    _checks.tensor("caps", caps, torch.int32, [batch], verify_lens.device)
    padding = padding_rows(batch, num_slots)
    _checks.integer("rows", rows, padding, _checks.MAX_VERIFY_ROWS)
    room = (caps - verify_lens).clamp(min=0)
    before = room.cumsum(0, dtype=torch.int32) - room
    slack = (rows - padding - verify_lens.sum(dtype=torch.int32)).clamp(min=0)
    more = torch.minimum((slack - before).clamp(min=0), room)
    lens = torch.cat([verify_lens + more, verify_lens.new_ones(padding)])
    return Windows(lens, ragged_layout(lens, 0).cu_seqlens)


def kv_len_correction(window_lens: Tensor, commit_len: Tensor) -> Tensor:
    """What to add to KV lengths that were advanced by the whole window before the outcome was known: int32 [B], <= 0.

    ``commit_len - window``: rejected and filler rows are overwritten by the next step.
    """
    _checks.tensor("window_lens", window_lens, torch.int32, ["B"])
    _checks.tensor("commit_len", commit_len, torch.int32, list(window_lens.shape), window_lens.device)
    return commit_len - window_lens
