"""Timing of single calls in one process: p20, p50, p80 in microseconds, the contestants taking turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Call = Callable[[int], object]  # takes the number of the run, to rotate its inputs


@dataclass(frozen=True)
class Spread:
    """Percentiles of the duration of a call, in microseconds."""

    p20: float
    p50: float
    p80: float


def spread(samples: list[int]) -> Spread:
    """Percentiles of durations that are given in nanoseconds."""
    ordered = sorted(samples)
    return Spread(*(ordered[int(q * (len(ordered) - 1))] / 1e3 for q in (0.2, 0.5, 0.8)))


def race(calls: list[Call], seconds: float, warmup: int = 20, block: int = 25) -> list[Spread]:
    """Time the calls in turns of `block` runs, so that a drift of the machine's speed touches all of them alike."""
    for call in calls:
        for i in range(warmup):
            call(i)
    samples: list[list[int]] = [[] for _ in calls]
    end = time.perf_counter() + seconds * len(calls)
    run = 0
    while run < 3 * block or time.perf_counter() < end:
        for call, own in zip(calls, samples, strict=True):
            for i in range(run, run + block):
                start = time.perf_counter_ns()
                call(i)
                own.append(time.perf_counter_ns() - start)
        run += block
    return [spread(own) for own in samples]
