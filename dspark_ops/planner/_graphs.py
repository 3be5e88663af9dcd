"""Captured graphs and their key. A graph is captured for so many rows in so many slots, and both make its key.

Rows alone are not enough: with sizes 1, 32 and 192 and width 6, 32 requests of 6 rows each would replay what was
captured for 192 requests of one row. A step first takes the smallest captured number of slots that holds its requests,
and then, among the graphs of those slots only, the smallest number of rows that holds its rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from .. import _checks


class Graph(NamedTuple):
    """The key of a captured graph."""

    rows: int
    slots: int


class Graphs:
    """The captured graphs of a runtime.

    Attributes:
        slots: the captured numbers of slots, ascending.
        rows: every captured number of rows, whatever its slots, ascending.
        tiers: by number of slots, its graphs' rows, ascending.
    """

    def __init__(self, graphs: Iterable[tuple[int, int]], width: int) -> None:
        keys = []
        for rows, slots in graphs:
            _checks.integer("graphs: slots", slots, 1, _checks.MAX_VERIFY_ROWS)
            _checks.integer("graphs: rows", rows, 1, _checks.MAX_VERIFY_ROWS)
            if not slots <= rows <= slots * width:
                raise ValueError(f"graphs: expected slots <= rows <= slots * {width}, got rows {rows}, slots {slots}")
            keys.append(Graph(rows, slots))
        if len(set(keys)) != len(keys):
            raise ValueError("graphs: expected different keys (rows, slots), got one twice")
        self.slots = tuple(sorted({key.slots for key in keys}))
        self.rows = tuple(sorted({key.rows for key in keys}))
        self.tiers = {s: tuple(sorted(key.rows for key in keys if key.slots == s)) for s in self.slots}

    def slots_for(self, requests: int) -> int | None:
        """The smallest captured number of slots that holds so many requests; None if none does."""
        i = bisect_left(self.slots, requests)
        return self.slots[i] if i < len(self.slots) else None

    def pick(self, rows: int, requests: int) -> Graph | None:
        """The graph that a step replays; None if none holds it: run eager."""
        slots = self.slots_for(requests)
        if slots is None:
            return None
        tiers = self.tiers[slots]
        i = bisect_left(tiers, rows)
        return Graph(tiers[i], slots) if i < len(tiers) else None
