"""What a step costs in a replay: measured cells, or a staircase made up to look like a captured accelerator.

A scene has the cost that is charged and the cost models that a planner is given: `tier`, the staircase itself, and
`additive`, SGLang's fit to the same points, which cannot hold a cliff.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..cost import CostTable, TierGroup, TierTable
from ..cost.cells import CostCells
from ..cost.fit import fit_additive, fit_tiers

_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True)
class Scene:
    """A machine.

    Attributes:
        truth: the time of a step, charged to every policy.
        additive: what an additive fit makes of it.
        tiers: rows of the captured graphs; empty if it has none.
    """

    name: str
    truth: CostTable
    additive: CostTable
    tiers: tuple[int, ...] = ()
    note: str = ""

    def graphs(self, slots: int, width: int) -> list[tuple[int, int]] | None:
        """The graphs that steps of up to so many requests replay; None without any."""
        rows = [tier for tier in self.tiers if slots <= tier <= slots * width]
        return [(tier, slots) for tier in rows] or None


def measured(cells: CostCells) -> Scene:
    """The cells as they are: a line through those of the smallest measured bs that holds the requests."""
    return Scene("cells", fit_tiers(cells, ()), fit_additive(cells), note="measured, a 2-core CPU, no graphs")


def staircase(name: str, fixed: float, per_row: float, cliffs: dict[int, float], width: int, note: str) -> Scene:
    """Graphs every 8 rows up to 64, then every 32: ``fixed + per_row * tier`` ms, and more from each cliff on."""
    tiers = tuple(range(8, 65, 8)) + tuple(range(96, max(_SIZES) * width + 1, 32))

    def seconds(tier: int) -> float:
        return 1e-3 * (fixed + per_row * tier + sum(ms for start, ms in cliffs.items() if tier > start))

    truth = TierTable(groups=[TierGroup(max(_SIZES), tiers, [seconds(tier) for tier in tiers])])
    cells = [
        {"bs": size, "M": rows, "T": seconds(next(tier for tier in tiers if tier >= rows))}
        for size in _SIZES
        for rows in sorted({size, *(t + d for t in tiers for d in (-1, 0, 1) if size <= t + d <= size * width)})
        if rows <= tiers[-1]
    ]
    return Scene(name, truth, fit_additive(CostCells.from_list(cells)), tiers, note)


def scenes(cells: CostCells, width: int) -> list[Scene]:
    """The three of the report."""
    return [
        measured(cells),
        staircase("memory-bound", 9.0, 0.012, {64: 0.5, 256: 2.0}, width, "made up: rows are cheap, two cliffs"),
        staircase(
            "compute-bound", 6.0, 0.06, {64: 3.0, 128: 3.0, 256: 6.0}, width, "made up: rows and cliffs are dear"
        ),
    ]
