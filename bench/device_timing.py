"""Timing on a device: replays of a captured graph, with what the calls touch in the L2 cache or out of it.

A graph holds a run of calls and is timed between two events: neither Python nor the cost of one launch is in a figure.
Warm: all calls use one set of buffers. Cold: each call of the run has a set of its own, and before a set comes back at
least twice the L2's bytes have passed: those of the other sets, or else of a flush at the end of the run, whose own
time is measured and taken off. On a CPU, which the tests use, the calls are simply run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Call = Callable[[], Any]


@dataclass(frozen=True)
class Rotation:
    """Sets of buffers to go through, and bytes to flush after the last of them."""

    sets: int
    flush_bytes: int


def rotation(set_bytes: int, l2_bytes: int, most_sets: int = 64, most_bytes: int = 1 << 32) -> Rotation:
    """How to keep a set out of the cache until it is used again."""
    sets = max(2, min(most_sets, most_bytes // max(set_bytes, 1)))
    passed = (sets - 1) * set_bytes
    return Rotation(sets, 0 if passed >= 2 * l2_bytes else 2 * l2_bytes)


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """p20, p50 and p80, in the unit of the samples."""
    ordered = sorted(samples)
    return {f"p{q}": round(ordered[int(q / 100 * (len(ordered) - 1))], 3) for q in (20, 50, 80)}


def sample(calls: Sequence[Call], device: str, samples: int) -> list[float]:
    """Microseconds of the whole run of calls, `samples` times; one run goes before."""
    if device == "cpu":
        return [_wall(calls) for _ in range(samples + 1)][1:]
    graph = capture(calls)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    taken = []
    for i in range(samples + 1):
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i:
            taken.append(start.elapsed_time(end) * 1e3)
    return taken


def _wall(calls: Sequence[Call]) -> float:
    start = time.perf_counter_ns()
    for call in calls:
        call()
    return (time.perf_counter_ns() - start) / 1e3


def capture(calls: Sequence[Call]) -> torch.cuda.CUDAGraph:
    """A graph of the calls, each distinct one run once before, for what it compiles and allocates."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in dict.fromkeys(calls):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def warm(call: Call, device: str, samples: int, repeat: int = 64) -> dict[str, float]:
    """Microseconds of a call whose buffers are in the cache."""
    return percentiles([t / repeat for t in sample([call] * repeat, device, samples)])


def cold(calls: Sequence[Call], flush_bytes: int, device: str, samples: int) -> dict[str, float]:
    """Microseconds of a call whose buffers are not; `calls` are one per set."""
    if not flush_bytes:
        return percentiles([t / len(calls) for t in sample(calls, device, samples)])
    scratch = torch.zeros(flush_bytes // 8, dtype=torch.int64, device=device)
    flush = percentiles(sample([scratch.zero_], device, samples))["p50"]
    taken = sample([*calls, scratch.zero_], device, samples)
    return percentiles([max(t - flush, 0.0) / len(calls) for t in taken])


def host(call: Call, device: str, repeat: int = 100) -> float:
    """Microseconds of the host to issue a call, without a graph and without waiting for the device."""
    for _ in range(10):
        call()
    if device != "cpu":
        torch.cuda.synchronize()
    taken = _wall([call] * repeat)
    if device != "cpu":
        torch.cuda.synchronize()
    return round(taken / repeat, 2)
