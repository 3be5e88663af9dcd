"""Checks of the fields of a table: each returns the value in the form that a table keeps, or names the field."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from reprlib import repr as short

from .step_cost import MAX_NS

MAX_PROBE = (1 << 31) - 1


def probes(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """Non-empty, strictly increasing integers in [0, 2^31 - 1]."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TypeError(f"{name}: expected a list of integers, got {type(values).__name__}")
    if any(isinstance(x, bool) or not hasattr(x, "__index__") for x in values):
        raise TypeError(f"{name}: expected integers, got {short(list(values))}")
    found = tuple(map(operator.index, values))
    if not found:
        raise ValueError(f"{name}: expected at least one probe, got none")
    if found[0] < 0 or found[-1] > MAX_PROBE:
        raise ValueError(f"{name}: expected integers in [0, {MAX_PROBE}], got {short(list(found))}")
    for i in range(1, len(found)):
        if found[i] <= found[i - 1]:
            raise ValueError(
                f"{name}: expected strictly increasing integers, got {short(found[i])} after {short(found[i - 1])}"
            )
    return found


def finite(name: str, value: float) -> float:
    """A finite number; -0.0 becomes 0.0, so that equal tables are written alike."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # an int past the largest float
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name}: expected a finite number, got {short(value)}")
    return number + 0.0


def per_probe(name: str, values: Sequence[float], probes_name: str, count: int) -> tuple[float, ...]:
    """One finite number per probe."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TypeError(f"{name}: expected a list of numbers, got {type(values).__name__}")
    if len(values) != count:
        raise ValueError(f"{name}: expected {count} numbers, one per {probes_name}, got {len(values)}")
    return tuple(finite(f"{name}[{i}]", x) for i, x in enumerate(values))


def step_times(name: str, values: Sequence[float], probes_name: str, count: int) -> tuple[float, ...]:
    """One step time per probe: seconds above 0 that fit int32 nanoseconds."""
    times = per_probe(name, values, probes_name, count)
    for i, seconds in enumerate(times):
        if not 0 < seconds * 1e9 <= MAX_NS:
            raise ValueError(f"{name}[{i}]: expected seconds in (0, 2.147483647], got {seconds}")
    return times


def version(value: int) -> None:
    """The version of a file of ours that this package reads."""
    if type(value) is not int or value != 1:
        raise ValueError(f"version: expected 1, the one this package reads, got {short(value)}")
