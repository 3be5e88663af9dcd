"""Graph tiers on the host: rows of a captured graph, and how a budget, a rank and a group of ranks agree on one.

A step replays the smallest captured tier that holds its rows. Every answer is a number of rows, or -1 for "there is
none": no plan (`local_tier_rows`), no common tier, all ranks fall back (`agree_tier`), no graph that large, run eager
(`round_up_tier`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import torch
from torch import Tensor

from . import _checks


def _floor_rows(num_reqs: int, width: int, min_verify_len: int) -> int:
    """M0: the rows that any plan verifies."""
    _checks.integer("num_reqs", num_reqs, 0, _checks.MAX_VERIFY_ROWS)
    _checks.integer("width", width, 1, _checks.MAX_VERIFY_ROWS)
    _checks.integer("min_verify_len", min_verify_len, 0, width)
    return num_reqs * max(min_verify_len, 1)


def _check_tiers(tiers: Sequence[int]) -> None:
    if not tiers:
        raise ValueError("tiers: expected at least one tier, got none")
    previous = 0
    for tier in tiers:
        _checks.integer("tiers", tier, 1, (1 << 31) - 1)
        if tier <= previous:
            raise ValueError(f"tiers: expected strictly ascending rows, got {tier} after {previous}")
        previous = tier


def local_tier_rows(num_reqs: int, width: int, budget: int | None, min_verify_len: int = 1) -> int:
    """Rows this rank needs for its plan: min(M0 + budget, num_reqs * width).

    Args:
        num_reqs: active requests; 0 on an idle rank, which needs 0 rows.
        width: N, rows of a request at most.
        budget: rows above the mandatory ones; None if this rank has no plan, which gives -1: all ranks fall back.
        min_verify_len: rows that each request verifies at least; 0 counts as 1, the root.
    """
    floor_rows = _floor_rows(num_reqs, width, min_verify_len)
    if budget is None:
        return -1
    _checks.integer("budget", budget, 0)
    return min(floor_rows + budget, num_reqs * width)


def fill_budget(tier: int, num_reqs: int, width: int, min_verify_len: int = 1) -> int:
    """The budget that fills `tier` rows, so that padding becomes drafts: max(0, min(tier, num_reqs * width) - M0)."""
    _checks.integer("tier", tier, 0)
    floor_rows = _floor_rows(num_reqs, width, min_verify_len)
    return max(0, min(tier, num_reqs * width) - floor_rows)


def agree_tier(local_tiers: Sequence[int]) -> int:
    """Rows of the one step that data-parallel ranks take together, from each rank's `local_tier_rows`.

    The largest, since each rank must fit. -1 (all fall back to their uniform layout) if a rank has no plan (negative)
    or no rank has any rows, as there is nothing to agree on. Every rank gets the same list, hence the same answer.
    """
    for rows in local_tiers:
        _checks.integer("local_tiers", rows, -(1 << 31), (1 << 31) - 1)
    if any(rows < 0 for rows in local_tiers):
        return -1
    return max(local_tiers, default=0) or -1


def round_up_tier(rows: int, tiers: Sequence[int]) -> int:
    """The smallest tier that holds `rows`, -1 if none does (run eager). `tiers` is strictly ascending."""
    _checks.integer("rows", rows, 0)
    _check_tiers(tiers)
    i = bisect_left(tiers, rows)
    return tiers[i] if i < len(tiers) else -1


def tier_row(tiers: Sequence[int], device: str | torch.device = "cpu") -> Tensor:
    """The captured tiers as the int32 row on `device` that `allocate_verify_lens` takes. Make it once, at start-up."""
    _check_tiers(tiers)
    return torch.tensor(tiers, dtype=torch.int32, device=device)
