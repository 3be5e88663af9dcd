"""Rows of ns by number of rows, built from probes: stairs and lines.

No operation here wakes torch's threads, which on a busy host takes longer than the whole row: searchsorted and indexing
by a tensor do (index_select does not), round from 2048 elements on, everything else above 32768.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

import torch
from torch import Tensor

from .step_cost import MAX_NS

_CHUNK = 1 << 14
_TO_INTEGER = 1.5 * 2.0**52  # adding and subtracting it rounds a double below 2^51 half to even


def to_ns(seconds: float) -> int:
    """Whole nanoseconds, at least 1 and at most what an int32 holds."""
    return min(max(1, round(seconds * 1e9)), MAX_NS)


def stairs(ends: Sequence[int], values: Sequence[int], max_rows: int) -> Tensor:
    """Per number of rows, 0 to max_rows, the value of the first end that is not below it; 0 past the last; int32."""
    found = array("i")
    for end, value in zip(ends, values, strict=True):
        found.extend(array("i", [value]) * (min(end, max_rows) + 1 - len(found)))
    found.extend(array("i", [0]) * (max_rows + 1 - len(found)))
    return torch.frombuffer(found, dtype=torch.int32)


def fill_line_ns(
    row: Tensor, first: int, probes: Sequence[int], seconds: Sequence[float], least: int = -MAX_NS
) -> Tensor:
    """Write row[first:], int32 ns: interpolated between probes, held outside them, within [least, 2^31 - 1]."""
    end = len(row)
    points, known = torch.tensor(probes, dtype=torch.float64), torch.tensor(seconds, dtype=torch.float64)
    slope = torch.cat([known.diff() / points.diff(), torch.zeros(1, dtype=torch.float64)])
    segment = stairs([*(probe - 1 for probe in probes[1:]), end - 1], range(len(probes)), end - 1)
    for start in range(first, end, _CHUNK):
        stop = min(start + _CHUNK, end)
        low = segment[start:stop]
        past = torch.arange(start, stop, dtype=torch.float64).clamp_(min=probes[0]).sub_(points.index_select(0, low))
        past.mul_(slope.index_select(0, low)).add_(known.index_select(0, low)).mul_(1e9)
        row[start:stop] = past.add_(_TO_INTEGER).sub_(_TO_INTEGER).clamp_(least, MAX_NS)
    return row


def line_ns(probes: Sequence[int], seconds: Sequence[float], max_rows: int, least: int = -MAX_NS) -> Tensor:
    """`fill_line_ns` for 0 to max_rows rows."""
    return fill_line_ns(torch.empty(max_rows + 1, dtype=torch.int32), 0, probes, seconds, least)


def linear_at(probes: Sequence[int], values: Sequence[float], at: float) -> float:
    """The value at one point of the line between probes, held outside them."""
    high = bisect_right(probes, at)
    if high in (0, len(probes)):
        return values[max(high - 1, 0)]
    low = high - 1
    fraction = (at - probes[low]) / (probes[high] - probes[low])
    return values[low] + fraction * (values[high] - values[low])
