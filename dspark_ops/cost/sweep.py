"""Which step times are worth measuring (`sweep_plan`): the rows around each captured tier, at several batch sizes.

A staircase is decided at its edges. A sweep over round numbers of rows never sees one row past a tier, which is where
a plan loses most; this one measures tier ± 2, the mandatory rows, verify-all, and eager steps past the last tier.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from .. import _checks
from . import _fields
from .cells import EAGER

AROUND = 2
_EAGER_QUARTERS = (5, 6, 8)  # past the last tier, in quarters of it: beside its neighbours, the slope of eager steps

NOTE = (
    "measure a verify step of M rows for bs requests, spread evenly (dspark_ops.capture_lens(M, bs, gamma + 1)), with "
    "context cached tokens each, replaying the graph of tier rows (-1: eager); visit the cells in shuffled rounds, "
    "drop the first; add T, the median of n times in seconds, with n, T_min and T_max; dspark-ops fit-cost reads it"
)


def rows_worth_measuring(num_reqs: int, gamma: int, tiers: Sequence[int]) -> list[int]:
    """Rows to measure at so many requests, all in [num_reqs, num_reqs * (γ + 1)], ascending."""
    rows = {num_reqs, num_reqs * (gamma + 1)}
    rows |= {tier + d for tier in tiers for d in range(-AROUND, AROUND + 1)}
    rows |= {tiers[-1] * quarters // 4 for quarters in _EAGER_QUARTERS}
    return sorted(m for m in rows if num_reqs <= m <= num_reqs * (gamma + 1))


def sweep_plan(
    tiers: Sequence[int], num_reqs: Sequence[int], gamma: int, contexts: Sequence[int] = (), repeats: int = 15
) -> dict[str, Any]:
    """The cells to measure, as plain data: what `CostCells.load` reads once a profiler has added T to each.

    Args:
        tiers: rows of the captured graphs, ascending.
        num_reqs: batch sizes, ascending, each at least 1.
        gamma: γ; a request verifies 1 to γ + 1 rows.
        contexts: cached tokens of each request, ascending; empty: one that the profiler chooses.
        repeats: times that each cell should be measured.
    """
    tiers, batches = _fields.probes("tiers", tiers), _fields.probes("num_reqs", num_reqs)
    _checks.integer("tiers", tiers[0], 1)
    _checks.integer("num_reqs", batches[0], 1)
    _checks.integer("gamma", gamma, 1, _checks.MAX_VERIFY_ROWS)
    _checks.integer("repeats", repeats, 1)
    _checks.integer("num_reqs * (gamma + 1)", batches[-1] * (gamma + 1), 1, _checks.MAX_VERIFY_ROWS)
    lengths: Sequence[int | None] = _fields.probes("contexts", contexts) if contexts else (None,)
    cells = []
    for bs in batches:
        for rows in rows_worth_measuring(bs, gamma, tiers):
            at = bisect_left(tiers, rows)
            cell = {"bs": bs, "M": rows, "tier": tiers[at] if at < len(tiers) else EAGER}
            cells += [cell if length is None else cell | {"context": length} for length in lengths]
    return {"note": NOTE, "gamma": gamma, "tiers": list(tiers), "repeats": repeats, "cells": cells}
