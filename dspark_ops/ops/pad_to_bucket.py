"""`pad_to_bucket` and `capture_lens`: verify lengths that fill a captured graph's rows and slots (DESIGN 3.6)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.pad_to_bucket import pad_to_bucket as reference

_MAX_ROWS = (1 << 31) - 1


class PaddedLens(NamedTuple):
    """Lengths of the requests and padding requests of a captured graph."""

    padded: Tensor  # int32[slots]: rows each slot owns; feed these to `ragged_layout` or to a cumulative sum
    seqused: Tensor  # int32[slots]: rows of it that are real, 0 for padding requests


def _check(verify_lens: Tensor, rows: int, cap: int, padded: Tensor, seqused: Tensor) -> None:
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    _checks.integer("rows", rows, 0, _MAX_ROWS)
    _checks.integer("cap", cap, -1, _MAX_ROWS)
    _checks.output("out.padded", padded, torch.int32, ["slots"], verify_lens.device)
    if padded.shape[0] < verify_lens.shape[0]:
        raise ValueError(
            f"num_slots: expected at least one per request, got {padded.shape[0]} for {verify_lens.shape[0]}"
        )
    _checks.output("out.seqused", seqused, torch.int32, [padded.shape[0]], verify_lens.device)


_op = operator(
    "pad_to_bucket(Tensor verify_lens, int rows, int cap, Tensor(a!) padded, Tensor(b!) seqused) -> ()",
    reference,
    _check,
)


def pad_to_bucket(
    verify_lens: Tensor, rows: int, num_slots: int, *, cap: int | None = None, out: PaddedLens | None = None
) -> PaddedLens:
    """Lengths for a graph captured at `rows` rows and `num_slots` requests.

    With ``slack = R - Σ l`` and ``n = num_slots - B`` padding requests: padding request j gets
    ``floor(slack / n) + [j < slack mod n]`` rows; without padding requests the last request gets the slack; with no
    slack (Σ l >= R) the lengths stay and padding requests get 0. `cap` bounds every length afterwards, so that the
    lengths may then sum to less than R.

    Args:
        verify_lens: l, int32 [B]; negative counts as 0.
        rows: R, the graph's rows.
        num_slots: the graph's requests, at least B.
        cap: most rows one slot may own (the verify width N), or None.
        out: `PaddedLens` to write into.

    Returns:
        `PaddedLens`: ``padded`` (row ownership) and ``seqused`` (the real lengths, bounded by cap too; 0 on padding).

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Capture: rows, slots and cap are fixed; verify_lens may change on replay.

    Source: the bucket padding of SGLang's DSpark worker.
    """
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    _checks.integer("rows", rows, 0, _MAX_ROWS)
    _checks.integer("num_slots", num_slots, 0, _checks.MAX_VERIFY_ROWS)
    if cap is not None:
        _checks.integer("cap", cap, 0, _MAX_ROWS)
    if out is None:
        padded = torch.empty(num_slots, dtype=torch.int32, device=verify_lens.device)
        out = PaddedLens(padded, torch.empty_like(padded))
    else:
        _checks.result("out", out, PaddedLens)
        _checks.output("out.padded", out.padded, torch.int32, [num_slots], verify_lens.device)
    _op(verify_lens, rows, -1 if cap is None else cap, *out)
    return out


def capture_lens(rows: int, num_slots: int, width: int, device: torch.device | str | None = None) -> Tensor:
    """Verify lengths to capture a graph with: `rows` spread evenly over the slots, longer ones first.

    Slot j gets ``floor(rows / num_slots) + [j < rows mod num_slots]``, which is in [1, width] since
    ``1 <= num_slots <= rows <= num_slots * width`` is required.

    Args:
        rows: R, the graph's rows.
        num_slots: the graph's requests.
        width: N, the most rows one request can own.
        device: where the result lives.

    Returns:
        int32 [num_slots], summing to `rows`.

    Raises:
        TypeError, ValueError: a value that is no int or out of range, naming the argument.

    Source: the capture layout of SGLang's DSpark worker.
    """
    _checks.integer("num_slots", num_slots, 1, _checks.MAX_VERIFY_ROWS)
    _checks.integer("width", width, 1, _checks.MAX_VERIFY_ROWS)
    _checks.integer("rows", rows, num_slots, num_slots * width)
    each, longer = divmod(rows, num_slots)
    return torch.tensor([each + 1] * longer + [each] * (num_slots - longer), dtype=torch.int32, device=device)
