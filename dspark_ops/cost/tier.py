"""The staircase of captured graphs (`TierTable`): what a step costs when it replays the smallest tier that holds it.

A replayed graph takes the time of its tier, whatever part of its rows is real. So T is a staircase, looked up at the
tier above M, never the one below: a floor lookup prices the first row past a tier as if it were free, which is
exactly where a planner must not go. Past the last tier a step runs eagerly, and T grows row by row.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

import msgspec
from torch import Tensor

from .. import _checks
from . import _fields
from ._lookup import fill_line_ns, linear_at, stairs, to_ns
from .load import known
from .table import CostTable


class TierGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The measured times of one number of requests. Seconds, all in (0, 2^31 - 1 ns].

    Args:
        num_reqs: B, the requests (slots) of these steps.
        tiers, tier_seconds: rows of each captured graph, ascending, and the time of its replay. May be empty.
        eager_rows, eager_seconds: steps that replay nothing, used past the last tier; may be empty if there is a tier.
    """

    num_reqs: int
    tiers: Sequence[int]
    tier_seconds: Sequence[float]
    eager_rows: Sequence[int] = ()
    eager_seconds: Sequence[float] = ()

    def __post_init__(self) -> None:
        _checks.integer("num_reqs", self.num_reqs, 0, _fields.MAX_PROBE)
        if not self.tiers and not self.eager_rows:
            raise ValueError("tiers: expected at least one tier or one eager sample, got none")
        for rows, seconds in (("tiers", "tier_seconds"), ("eager_rows", "eager_seconds")):
            probes = _fields.probes(rows, getattr(self, rows)) if getattr(self, rows) else ()
            times = _fields.step_times(seconds, getattr(self, seconds), rows, len(probes))
            msgspec.structs.force_setattr(self, rows, probes)
            msgspec.structs.force_setattr(self, seconds, times)

    @property
    def is_flat(self) -> bool:
        """Whether every step measured took the same time."""
        return len({to_ns(seconds) for seconds in (*self.tier_seconds, *self.eager_seconds)}) == 1

    @property
    def last_tier(self) -> int:
        """Rows of the largest graph; -1 if there is none."""
        return self.tiers[-1] if self.tiers else -1

    def growth(self) -> float:
        """Seconds per row past the last sample: the slope of the last two, eager ones if there are any.

        Where that is not above 0, or there is only one, time in proportion to rows. Never flat: a flat end would make
        every further row look free.
        """
        rows, seconds = (self.eager_rows, self.eager_seconds) if self.eager_rows else (self.tiers, self.tier_seconds)
        slope = 0.0 if len(rows) < 2 else (seconds[-1] - seconds[-2]) / (rows[-1] - rows[-2])
        return slope if slope > 0 else seconds[-1] / max(rows[-1], 1)

    def _eager_at(self, rows: int) -> float:
        """Seconds on the line of the eager samples, drawn out at both ends by their own slope."""
        known, seconds = self.eager_rows, self.eager_seconds
        if rows > known[-1]:
            return seconds[-1] + self.growth() * (rows - known[-1])
        if rows >= known[0]:
            return linear_at(known, seconds, rows)
        slope = (seconds[1] - seconds[0]) / (known[1] - known[0]) if len(known) > 1 else self.growth()
        return seconds[0] - slope * (known[0] - rows)

    def past_tiers(self, max_rows: int) -> tuple[list[int], list[float]]:
        """Knots of the line past the last tier, up to max_rows at least: (rows, seconds)."""
        rows, seconds = list(self.eager_rows), list(self.eager_seconds)
        if not rows:
            rows, seconds = [self.last_tier], [self.tier_seconds[-1]]
        elif self.tiers and self.last_tier + 1 not in rows:
            # Where no sample says so, eager is not cheaper than the replay of fewer rows.
            start = self.last_tier + 1
            first = max(self.tier_seconds[-1], self._eager_at(start))
            later = bisect_left(rows, start)
            rows, seconds = [start, *rows[later:]], [first, *seconds[later:]]
        if rows[-1] < max_rows:
            seconds.append(seconds[-1] + self.growth() * (max_rows - rows[-1]))
            rows.append(max_rows)
        return rows, seconds

    def row(self, max_rows: int) -> Tensor:
        """T in ns for 0 to max_rows rows, int32."""
        row = stairs(self.tiers, [to_ns(seconds) for seconds in self.tier_seconds], max_rows)
        if max_rows <= self.last_tier:
            return row
        return fill_line_ns(row, self.last_tier + 1, *self.past_tiers(max_rows), least=1)


@known
class TierTable(CostTable, frozen=True, forbid_unknown_fields=True, dict=True, tag_field="kind", tag="tier_table"):
    """One measured time per captured tier, for each number of requests measured (DESIGN 5). All cost is in the row.

    ``T(M) = tier_seconds[smallest tier >= M]`` up to the last tier; past it linear between the eager samples, then
    their last slope. B requests take the group of the smallest num_reqs >= B, whose graphs have room for them; more
    requests than were measured take the last group.

    Args:
        groups: num_reqs strictly ascending, at least one.
        gamma: γ of the measured steps, or None: a plan for another γ is refused.
        version: of the file form: 1.
    """

    groups: Sequence[TierGroup]
    gamma: int | None = None
    version: int = 1

    def __post_init__(self) -> None:
        _fields.version(self.version)
        if self.gamma is not None:
            _checks.integer("gamma", self.gamma, 1, _checks.MAX_VERIFY_ROWS)
        if not self.groups:
            raise ValueError("groups: expected at least one group, got none")
        for i, group in enumerate(self.groups):
            if not isinstance(group, TierGroup):
                raise TypeError(f"groups[{i}]: expected a TierGroup, got {type(group).__name__}")
        _fields.probes("groups.num_reqs", [group.num_reqs for group in self.groups])
        self._set(groups=tuple(self.groups))

    @cached_property
    def request_probes(self) -> tuple[int, ...]:
        """num_reqs of each group."""
        return tuple(group.num_reqs for group in self.groups)

    def group_of(self, num_reqs: int) -> int:
        """Index of the group for so many requests."""
        return min(bisect_left(self.request_probes, num_reqs), len(self.groups) - 1)

    def _build_row(self, max_rows: int, group: int) -> Tensor:
        return self.groups[group].row(max_rows)

    @property
    def tiers(self) -> tuple[int, ...]:
        """Every captured tier of any group, ascending."""
        return tuple(sorted({tier for group in self.groups for tier in group.tiers}))

    @property
    def is_flat(self) -> bool:
        """Whether no group's time depends on rows, as far as was measured: a planner then verifies everything."""
        return all(group.is_flat for group in self.groups)
