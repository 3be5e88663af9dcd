"""A cost model that learns from the steps that were run (`OnlineCost`).

A profile ages: clocks move, kernels change, contexts grow, and often there is none at all. Each observed step time
corrects, in its own tier only, the logarithm of T, and with it a common scale by which the other tiers follow. There
is no dead band: every observation counts, so the error goes to 0, not to the width of a band.

T = scale * u[tier] + base_scale * base, where `base` is what requests and context add to the start table's own step.
With ``e = ln(observed / predicted)``, cut at ±ln 4 so that a hiccup, however long, counts as a small one, and the gain
``g(n) = max(1 / memory, 1 / (n + 1 + prior))`` after n observations (N of any tier): ``ln T[tier] += g(n) * e``, of
which ``g(N) / 2 * e`` is given to the scale, and ``ln base_scale += g(N) / 2 * e * share``, with the share that it has
in T. That is a relaxed projection onto the times that explain the observation: every tier that keeps being visited
converges, from any start, and the others follow half or more of a common change.

Forgetting: an observation keeps the share 1 - 1 / memory of its weight at each later one of the same tier; half is
gone after 0.69 * memory. What is learnt is the geometric mean; noise of a relative deviation σ leaves about
σ * sqrt(1 / (2 * memory)) of it in T. Past the last tier the same is done to knots between which T is linear.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence

from torch import Tensor

from .. import _checks
from . import _fields
from .context import ContextTable
from .corrected import CorrectedTable
from .step_cost import MAX_NS, Device
from .table import CostTable
from .tier import TierGroup, TierTable

_LIMIT = 4.0
_SHORTEST, _LONGEST = 1e-9, (MAX_NS - 1) * 1e-9
_MAX_TIER = _checks.MAX_VERIFY_ROWS // 2

Layout = tuple[int, Sequence[int], Sequence[int]]  # num_reqs, tiers, rows of eager samples


def _knots(tiers: Sequence[int], eager: Sequence[int]) -> list[int]:
    """Rows past the last tier between which T is taken to be linear: at least two, the measured ones among them."""
    eager = [rows for rows in eager if rows <= _checks.MAX_VERIFY_ROWS]
    if not tiers:
        return eager if len(eager) > 1 else [eager[0], 2 * eager[0]]
    last = tiers[-1]
    ends = {last + 1, 2 * last, min(4 * last, _checks.MAX_VERIFY_ROWS)}
    return sorted(ends | {rows for rows in eager if rows > last})


class _Staircase:
    """The times of one group, without the common scale: of its tiers, then of knots of the line past them."""

    def __init__(self, layout: Layout, table: CostTable) -> None:
        self.num_reqs, tiers, eager = layout
        self.tiers = len(tiers)
        self.rows = [*tiers, *_knots(tiers, eager)]
        base, row = table.base(self.num_reqs), table.row(self.rows[-1], num_reqs=self.num_reqs).tolist()
        self.seconds = [max(_SHORTEST, (row[rows] + base) * 1e-9) for rows in self.rows]
        self.seen = [0.0] * len(self.rows)

    def parts(self, rows: int) -> tuple[tuple[int, float], ...]:
        """(entry, weight) whose weighted sum is T: one tier, two knots, or the last two drawn out.

        Two that do not rise are drawn out in proportion to rows, as `TierGroup.growth` does.
        """
        high = bisect_left(self.rows, rows)
        if high <= self.tiers:
            return ((high, 1.0),)
        high = min(high, len(self.rows) - 1)
        if rows > self.rows[-1] and self.seconds[-1] <= self.seconds[-2]:
            return ((high - 1, 0.0), (high, rows / self.rows[-1]))
        share = (rows - self.rows[high - 1]) / (self.rows[high] - self.rows[high - 1])
        return ((high - 1, 1.0 - share), (high, share))

    def at(self, rows: int) -> float:
        """T without the scale."""
        return sum(self.seconds[entry] * weight for entry, weight in self.parts(rows))

    def correct(self, rows: int, factor: float, gain: Callable[[float], float], more: float) -> None:
        """Multiply T at `rows`, `more` included, which is not in the staircase, by factor ** gain(observations)."""
        parts = self.parts(rows)
        # Normalised least mean squares; past the last knot both ends of the line move alike, so that it stays one.
        norm = sum(weight * weight for _, weight in parts)
        drawn_out = rows > self.rows[-1]
        for entry, weight in parts:
            share = 1.0 if drawn_out else weight / norm
            if share > 0.0:
                step = factor ** (gain(self.seen[entry]) * share)
                self.seconds[entry] = max(_SHORTEST, (self.seconds[entry] + more) * step - more)
                self.seen[entry] += min(share, 1.0)

    def group(self, scale: float) -> TierGroup:
        """The times as a table keeps them."""
        seconds = [max(_SHORTEST, min(scale * time, _LONGEST)) for time in self.seconds]
        n = self.tiers
        return TierGroup(self.num_reqs, self.rows[:n], seconds[:n], self.rows[n:], seconds[n:])


def _layouts(table: CostTable, tiers: Sequence[int] | None) -> list[Layout]:
    """What to correct: the table's own groups and tiers, or for a table that has none the given tiers."""
    steps = table.table if isinstance(table, ContextTable) else table
    steps = steps.steps if isinstance(steps, CorrectedTable) else steps
    if isinstance(steps, TierTable):
        if tiers is not None:
            raise ValueError("tiers: must be left out with a table that knows its own")
        found: list[Layout] = [(g.num_reqs, g.tiers, g.eager_rows) for g in steps.groups]
    elif tiers is None:
        raise ValueError(f"tiers: expected the captured tiers, which a {type(steps).__name__} does not know")
    else:
        found = [(n, _fields.probes("tiers", tiers), ()) for n in table.request_probes]
    for _, group_tiers, eager in found:
        for rows in group_tiers if group_tiers else eager[:1]:
            _checks.integer("tiers", rows, 1, _MAX_TIER)
    return found


def _bounded(scale: float) -> float:
    return max(2.0**-40, min(scale, 2.0**40))


class OnlineCost:
    """A `StepCost` that follows observed step times; see the module for the rule, its gains and its forgetting rate.

    ``row``, ``base`` and ``fingerprint`` are those of `table`, the corrections as last published, so that a plan never
    sees half a correction and ranks can agree: with several ranks let one observe, give `refresh` 0, and send
    ``publish().to_json()`` to the others, who read it with `parse_cost_table`. Not for several threads at once: a step
    asks for a row and a base, so give planners in another thread the table that `publish` returned.

    Args:
        table: the start, of any kind; a flat one will do. A `CorrectedTable` is continued.
        tiers: captured tiers, for a table that does not know them; at least one.
        memory: observations of a tier that are remembered: the forgetting rate is 1 / memory.
        prior: observations that the start counts for, at least 1.
        refresh: publish after so many observations; 0: only when `publish` is called.
    """

    def __init__(
        self, table: CostTable, tiers: Sequence[int] | None = None, memory: int = 64, prior: int = 1, refresh: int = 64
    ) -> None:
        _checks.integer("memory", memory, 2)
        _checks.integer("prior", prior, 1)
        _checks.integer("refresh", refresh, 0)
        if not isinstance(table, CostTable):
            raise TypeError(f"table: expected a cost table, got {type(table).__name__}")
        self._least_gain, self._prior, self._refresh = 1.0 / memory, prior, refresh
        self._start, self._base_scale = table, 1.0
        if isinstance(table, CorrectedTable):
            self._start, self._base_scale = table.table, table.base_scale
        self._scale = 1.0
        self._groups = [_Staircase(layout, table) for layout in _layouts(table, tiers)]
        self._bases = [self._start.base(group.num_reqs) for group in self._groups]
        self._sizes = [group.num_reqs for group in self._groups]
        self.observations = 0
        self.version = 0
        self.publish()

    def _gain(self, seen: float) -> float:
        return max(self._least_gain, 1.0 / (seen + 1.0 + self._prior))

    def observe(self, rows: int, seconds: float, num_reqs: int = 1, context_tokens: int | None = None) -> None:
        """Learn from one step: the rows that its plan had, the seconds that it took, its requests and context.

        Rows up to the last tier count for the tier that holds them, more rows as an eager step. Steps that did
        something else as well (a prefill, a capture) must be left out. Costs a few microseconds.
        """
        _checks.integer("rows", rows, 0, _checks.MAX_VERIFY_ROWS)
        if not 0.0 < seconds < math.inf:
            raise ValueError(f"seconds: expected a finite time above 0, got {seconds}")
        index = min(bisect_left(self._sizes, num_reqs), len(self._sizes) - 1)
        group, base_ns = self._groups[index], self._start.base(num_reqs, context_tokens) - self._bases[index]
        base = self._base_scale * base_ns * 1e-9
        predicted = max(_SHORTEST, self._scale * group.at(rows) + base)
        factor = max(1.0 / _LIMIT, min(seconds / predicted, _LIMIT))
        half = self._gain(self.observations) / 2.0
        group.correct(rows, factor, lambda seen: self._gain(seen) - half, base / self._scale)
        self._scale = _bounded(self._scale * factor**half)
        self._base_scale = _bounded(self._base_scale * factor ** (half * max(-1.0, min(base / predicted, 1.0))))
        self.observations += 1
        if self._refresh and self.observations % self._refresh == 0:
            self.publish()

    def publish(self) -> CorrectedTable:
        """Let plans use everything that was observed so far; returns the table, which can be saved and sent."""
        steps = TierTable([group.group(self._scale) for group in self._groups])
        self.table = CorrectedTable(steps, self._base_scale, self._start)
        self.version += 1
        return self.table

    def row(self, max_rows: int, device: Device = "cpu", num_reqs: int = 1) -> Tensor:
        """The published row, int32 [max_rows + 1] ns; the same tensor until the next `publish`."""
        return self.table.row(max_rows, device, num_reqs)

    def base(self, num_reqs: int, context_tokens: int | None = None) -> int:
        """The published base in ns."""
        return self.table.base(num_reqs, context_tokens)

    @property
    def gamma(self) -> int | None:
        """γ of the table that is corrected."""
        return self.table.gamma

    @property
    def tiers(self) -> tuple[int, ...]:
        """The captured tiers."""
        return self.table.tiers

    @property
    def is_flat(self) -> bool:
        """Whether T is still the same for any number of rows."""
        return self.table.is_flat

    @property
    def fingerprint(self) -> str:
        """That of the published table."""
        return self.table.fingerprint
