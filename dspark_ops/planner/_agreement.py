"""How data-parallel ranks agree on the one step that they take together: two rules, each a vector and one reduction.

A rule turns what a rank brings (`Local`) into a vector of int64 values, the ranks reduce it elementwise, and every rank
reads the same answer from the result. Nothing here communicates, so that a runtime may use its own collective; the
vectors are lists, since what a lone rank does with them takes less time than making a tensor.

- `MaximumRule` (reduce by maximum): the most rows and the most requests of any rank.
- `JointRule` (reduce by sum): each rank brings its tau at every tier, and the tier that maximises
  ``sum of tau / T(tier)`` wins. A step takes the time of its tier on every rank, so this is the best common one.

With either, a rank without a plan makes all fall back, and a rank without requests takes part.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..tiers import agree_tier
from ._costs import PlanningCost
from ._graphs import Graph, Graphs
from ._identity import RanksDiffer

_LOW_BITS = 32
_LOW = (1 << _LOW_BITS) - 1


class Local(NamedTuple):
    """What one rank brings to the agreement."""

    requests: int  # 0: idle
    rows: int  # M0 + budget; -1 without a plan
    context_tokens: int = 0
    tier_tau: list[list[int]] | None = None  # [2, P], as `plan_budget` gives it, over every captured number of rows


class Agreed(NamedTuple):
    """The step that all ranks take."""

    rows: int  # -1: all fall back
    graph: Graph | None  # None: eager
    ns: int = 0  # the step's time, where agreeing took it into account


FALL_BACK = Agreed(-1, None)


class Rule(Protocol):
    """A way to agree. `reduction` is "max" or "sum"."""

    reduction: str

    def vector(self, local: Local) -> list[int]:
        """This rank's part."""

    def alone(self, local: Local) -> Agreed:
        """What one rank would agree with itself: ``choose(vector(local))``, without the vector."""

    def choose(self, reduced: list[int]) -> Agreed:
        """The answer, from the elementwise reduction of all ranks' vectors."""


class MaximumRule:
    """The largest local plan, rounded up to a graph for the most requests. -1 anywhere: all fall back."""

    reduction = "max"

    def __init__(self, graphs: Graphs | None) -> None:
        self._graphs = graphs

    def vector(self, local: Local) -> list[int]:
        """[no plan, rows, requests]."""
        return [int(local.rows < 0), local.rows, local.requests]

    def alone(self, local: Local) -> Agreed:
        """The graph that holds this rank's plan."""
        if local.rows <= 0:
            return FALL_BACK
        return Agreed(local.rows, self._graphs.pick(local.rows, local.requests) if self._graphs else None)

    def choose(self, reduced: list[int]) -> Agreed:
        """The common rows, and the graph that holds them."""
        no_plan, most_rows, requests = reduced
        return self.alone(Local(requests, agree_tier([-1 if no_plan else most_rows])))


class JointRule:
    """The common tier with the most expected tokens per second over all ranks.

    tau is summed as exact integers in two words of 32 bits, so that no number of ranks overflows. T is that of the
    agreed number of slots and of the mean context of the ranks; ranks whose tables differ would choose differently, so
    each also brings 24 bits of its table's fingerprint. Falls back where no captured number of slots holds the
    requests of every rank, or no tier holds their mandatory rows.

    Args:
        graphs: the captured graphs.
        cost: None counts every tier as equally fast.
        min_gain_ppm, overhead_ns: keep the smallest tier that loses no tau, unless a smaller one is better by more,
            `overhead_ns` counted in its time.
    """

    reduction = "sum"

    def __init__(self, graphs: Graphs, cost: PlanningCost | None, min_gain_ppm: int = 0, overhead_ns: int = 0) -> None:
        self._graphs, self._cost = graphs, cost
        self._ppm, self._overhead = min_gain_ppm, overhead_ns
        self._classes = len(graphs.slots) + 1
        self._tiers = len(graphs.rows)
        self._columns = {s: [graphs.rows.index(rows) for rows in graphs.tiers[s]] for s in graphs.slots}

    def vector(self, local: Local) -> list[int]:
        """[ranks; table mark, its square; ranks without a plan, with requests; context; ranks by slots; tau; under M0].

        tau is in two parts, high words and low words; tau and under M0 are by tier.
        """
        mark = self._cost.mark(self._graphs.slots[-1]) if self._cost else 0
        head = [1, mark, mark * mark, int(local.rows < 0), int(local.requests > 0), local.context_tokens]
        head += [0] * self._classes
        slots = self._graphs.slots_for(local.requests)
        head[-self._classes + (self._classes - 1 if slots is None else self._graphs.slots.index(slots))] = 1
        if local.tier_tau is None:
            return head + [0] * (3 * self._tiers)
        tau, under = local.tier_tau
        return [*head, *[t >> _LOW_BITS for t in tau], *[t & _LOW for t in tau], *under]

    def alone(self, local: Local) -> Agreed:
        """The best graph of this rank."""
        slots = self._graphs.slots_for(local.requests)
        if local.rows <= 0 or slots is None or local.tier_tau is None:
            return FALL_BACK
        tau, under = local.tier_tau
        return self._pick(slots, tau, under, local.context_tokens or None)

    def choose(self, reduced: list[int]) -> Agreed:
        """The best tier of the largest number of slots that a rank needs."""
        ranks, marks, squares, without_plan, busy, context, *rest = reduced
        # Numbers are all equal exactly if their squares' mean is their mean's square: every rank sees it alike.
        if ranks * squares != marks * marks:
            raise RanksDiffer("cost: the ranks' tables have come to differ; let one rank's be published to all")
        counts, by_tier = rest[: self._classes], rest[self._classes :]
        if without_plan or not busy or counts[-1]:
            return FALL_BACK
        slots = self._graphs.slots[max(i for i, count in enumerate(counts) if count)]
        high, low, under = (by_tier[i * self._tiers : (i + 1) * self._tiers] for i in range(3))
        tau = [(above << _LOW_BITS) + below for above, below in zip(high, low, strict=True)]
        return self._pick(slots, tau, under, context // busy or None)

    def _pick(self, slots: int, tau: list[int], under: list[int], context_tokens: int | None) -> Agreed:
        """The tier with the best tau / T, the smallest on a tie; `full` is the smallest that loses no tau."""
        tiers = self._graphs.tiers[slots]
        times = self._cost.at_tiers(slots, tiers, context_tokens) if self._cost else [1] * len(tiers)
        best = full = (0, 0, 1)  # rows, tau, ns
        for rows, column, ns in zip(tiers, self._columns[slots], times, strict=True):
            if under[column]:
                continue
            if tau[column] * best[2] > best[1] * ns:
                best = (rows, tau[column], ns)
            if tau[column] > full[1]:
                full = (rows, tau[column], ns)
        if not best[0]:
            return FALL_BACK
        if best[0] < full[0]:
            gain, needed = best[1] * full[2] * 1_000_000, full[1] * (best[2] + self._overhead) * (1_000_000 + self._ppm)
            best = best if gain > needed else full
        return Agreed(best[0], Graph(best[0], slots), best[2] if self._cost else 0)
