"""Rows of ns by number of rows, built from probes: floor, ceiling and linear lookup.

Not searchsorted: it wakes torch's threads, which on a busy host takes longer than the whole row.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

import torch
from torch import Tensor

from .step_cost import MAX_NS


def to_ns(seconds: float) -> int:
    """Whole nanoseconds, at least 1 and at most what an int32 holds."""
    return min(max(1, round(seconds * 1e9)), MAX_NS)


def floor_index(probes: Sequence[int], max_rows: int) -> Tensor:
    """Per number of rows, 0 to max_rows, the index of the last probe that is not above it, or 0."""
    index = array("q", [0]) * min(probes[0], max_rows + 1)
    for i, end in enumerate((*probes[1:], max_rows + 1)):
        index.extend(array("q", [i]) * (min(end, max_rows + 1) - len(index)))
    return torch.frombuffer(index, dtype=torch.int64)


def linear(probes: Sequence[int], values: Sequence[float], max_rows: int) -> Tensor:
    """Per number of rows, 0 to max_rows, the value interpolated between probes, held outside them; float64."""
    points, known = torch.tensor(probes, dtype=torch.float64), torch.tensor(values, dtype=torch.float64)
    slope = torch.cat([known.diff() / points.diff(), torch.zeros(1, dtype=torch.float64)])
    low = floor_index(probes, max_rows)
    past = torch.arange(max_rows + 1, dtype=torch.float64).clamp_(min=probes[0]).sub_(points[low])
    return past.mul_(slope[low]).add_(known[low])


def linear_at(probes: Sequence[int], values: Sequence[float], at: float) -> float:
    """One value of `linear`."""
    high = bisect_right(probes, at)
    if high in (0, len(probes)):
        return values[max(high - 1, 0)]
    low = high - 1
    fraction = (at - probes[low]) / (probes[high] - probes[low])
    return values[low] + fraction * (values[high] - values[low])
