"""Measured step times (`CostCells`): what fits are made from, and what a replay charges for a step."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from reprlib import repr as short  # of a nested or endless value too
from statistics import fmean, median
from typing import Any

from torch import Tensor

from ._lookup import line_ns
from .noise import range_over_deviation
from .step_cost import MAX_NS

EAGER = -1


@dataclass(frozen=True)
class Cell:
    """One measurement: a verify step of `rows` rows for `num_reqs` requests took `seconds` (a median, if of many)."""

    num_reqs: int
    rows: int
    seconds: float
    tier: int | None = None  # rows of the graph that was replayed, EAGER, or not said
    context: int | None = None  # cached tokens of each request
    samples: int = 1
    relative_range: float | None = None  # (longest - shortest) / seconds of the samples

    @property
    def context_tokens(self) -> int | None:
        """Cached tokens of the step, as `StepCost.base` takes them."""
        return None if self.context is None else self.context * self.num_reqs

    @classmethod
    def from_json(cls, at: str, cell: Any) -> Cell:
        """From ``{bs, M, T, tier?, context?, n?, T_min?, T_max?}``; other keys are a profiler's own business."""
        if not isinstance(cell, dict) or not {"bs", "M", "T"} <= cell.keys():
            raise ValueError(f"{at}: expected an object with bs, M and T, got {short(cell)}")
        for key, low in (("bs", 1), ("M", 1), ("tier", 1), ("context", 0), ("n", 1)):
            value: Any = cell.get(key)
            if key == "tier" and value == EAGER and type(value) is int:
                continue
            if (value is not None or key in ("bs", "M")) and (type(value) is not int or not low <= value <= MAX_NS):
                raise ValueError(f"{at}: {key}: expected an int >= {low}, got {short(value)}")
        for key in ("T", "T_min", "T_max"):
            value = cell.get(key)
            if value is None and key != "T":
                continue
            if type(value) not in (int, float) or not 0 < value <= MAX_NS * 1e-9:
                raise ValueError(f"{at}: {key}: expected seconds above 0 and under 2.147, got {short(value)}")
        tier, shortest, longest = cell.get("tier"), cell.get("T_min"), cell.get("T_max")
        if tier is not None and tier != EAGER and tier < cell["M"]:
            raise ValueError(f"{at}: tier: expected at least M = {cell['M']} rows, or {EAGER} for eager, got {tier}")
        count, spread = cell.get("n") or 1, None
        if shortest is not None and longest is not None:
            if not shortest <= cell["T"] <= longest:
                raise ValueError(f"{at}: T: expected a time from T_min to T_max, got {cell['T']}")
            spread = (longest - shortest) / cell["T"] if count > 1 else None
        return cls(cell["bs"], cell["M"], float(cell["T"]), tier, cell.get("context"), count, spread)


@dataclass(frozen=True)
class CostCells:
    """All measurements of a machine, and what the file says of them."""

    samples: tuple[Cell, ...]
    gamma: int | None = None
    tiers: tuple[int, ...] | None = None  # captured ones; None: not said, the cells may say it
    _rows: dict[tuple[int, int], Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> CostCells:
        """Read a JSON list of cells (`Cell.from_json`), or an object with "cells", and perhaps "gamma" and "tiers"."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(data, dict):
                return cls.from_list(data)
            return cls.from_list(data.get("cells"), data.get("gamma"), data.get("tiers"))
        except (ValueError, RecursionError) as error:  # bad JSON and bad UTF-8 are ValueErrors
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_list(cls, data: object, gamma: object = None, tiers: object = None) -> CostCells:
        """From a list of dicts with bs >= 1, M >= 1 and 0 < T < 2.147 s (a step time is an int32 of ns)."""
        if not isinstance(data, list) or not data:
            raise ValueError("expected a list of cells {bs, M, T}, not empty")
        if gamma is not None and (type(gamma) is not int or not 1 <= gamma <= MAX_NS):
            raise ValueError(f"gamma: expected an int >= 1, got {short(gamma)}")
        if tiers is not None and (
            not isinstance(tiers, list)
            or any(type(tier) is not int or not 1 <= tier <= MAX_NS for tier in tiers)
            or sorted(set(tiers)) != tiers
        ):
            raise ValueError(f"tiers: expected strictly ascending ints >= 1, got {short(tiers)}")
        cells = tuple(Cell.from_json(f"cell {i}", cell) for i, cell in enumerate(data))
        return cls(cells, gamma, None if tiers is None else tuple(tiers))

    @cached_property
    def cells(self) -> dict[int, list[tuple[int, float]]]:
        """bs -> (M, T), M ascending; repeated cells give their median."""
        found: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for (bs, rows), seconds in medians(self.samples, lambda cell: (cell.num_reqs, cell.rows)):
            found[bs].append((rows, seconds))
        return dict(found)

    def relative_noise(self) -> float:
        """Relative standard deviation of one step time, from repeated cells and from recorded ranges, pooled.

        Raises ValueError if no cell was measured more than once.
        """
        repeated: dict[object, list[float]] = defaultdict(list)
        squares, freedom = 0.0, 0
        for cell in self.samples:
            if cell.relative_range is not None:
                deviation = cell.relative_range / range_over_deviation(cell.samples)
                squares += (cell.samples - 1) * deviation * deviation
                freedom += cell.samples - 1
            else:
                repeated[cell.num_reqs, cell.rows, cell.tier, cell.context].append(cell.seconds)
        for seconds in repeated.values():
            mean = fmean(seconds)
            squares += sum((t / mean - 1.0) ** 2 for t in seconds)
            freedom += len(seconds) - 1
        if freedom == 0:
            raise ValueError("cells: expected repeated cells, or n with T_min and T_max, to tell the noise from")
        return math.sqrt(squares / freedom)

    def samples_per_cell(self) -> int:
        """Step times behind the median of a cell, in the least measured one."""
        counts: dict[object, int] = defaultdict(int)
        for cell in self.samples:
            counts[cell.num_reqs, cell.rows, cell.tier, cell.context] += cell.samples
        return min(counts.values())

    def nearest(self, num_reqs: int) -> int:
        """The measured bs nearest to `num_reqs`; the smaller one on a tie."""
        return min(self.cells, key=lambda bs: (abs(bs - num_reqs), bs))

    def step_ns(self, num_reqs: int, max_rows: int) -> Tensor:
        """T in ns for M = 0..max_rows, int32 [max_rows + 1] on the CPU: linear between the cells of the nearest bs.

        Outside its measured rows the nearest cell's time holds. The row is cached: do not write into it.
        """
        key = (self.nearest(num_reqs), max_rows)
        if key not in self._rows:
            rows, seconds = zip(*self.cells[key[0]], strict=True)
            self._rows[key] = line_ns(rows, seconds, max_rows, least=1)
        return self._rows[key]

    def measured_rows(self, num_reqs: int) -> int:
        """The most rows that were measured at the nearest bs; beyond them `step_ns` only repeats the last time."""
        return self.cells[self.nearest(num_reqs)][-1][0]


def medians(cells: Iterable[Cell], key: Any) -> list[tuple[Any, float]]:
    """The median of the cells that share a key, by ascending key."""
    groups: dict[Any, list[float]] = defaultdict(list)
    for cell in cells:
        groups[key(cell)].append(cell.seconds)
    return [(found, median(seconds)) for found, seconds in sorted(groups.items())]
