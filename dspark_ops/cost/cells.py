"""A cost model straight from measurements: what a replay charges for a step (`CostCells`).

It is not in `cost`, which `import dspark_ops` loads: this one needs numpy, which only the command line brings.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as short  # of a nested or endless value too
from statistics import median

import numpy as np
import torch
from torch import Tensor

from .step_cost import MAX_NS


@dataclass(frozen=True)
class CostCells:
    """Measured step times: for each number of requests bs, the seconds T of a verify step of M rows."""

    cells: dict[int, list[tuple[int, float]]]  # bs -> (M, T), M ascending
    _rows: dict[tuple[int, int], Tensor] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> CostCells:
        """Read a JSON list of ``{bs, M, T}``, or an object whose "cells" is one; repeated cells give their median."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls.from_list(data.get("cells") if isinstance(data, dict) else data)
        except (ValueError, RecursionError) as error:  # bad JSON and bad UTF-8 are ValueErrors
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_list(cls, data: object) -> CostCells:
        """From a list of dicts with bs >= 1, M >= 1 and 0 < T < 2.147 s (a step time is an int32 of ns)."""
        if not isinstance(data, list) or not data:
            raise ValueError("expected a list of cells {bs, M, T}, not empty")
        samples: dict[tuple[int, int], list[float]] = defaultdict(list)
        for i, cell in enumerate(data):
            if not isinstance(cell, dict) or not {"bs", "M", "T"} <= cell.keys():
                raise ValueError(f"cell {i}: expected an object with bs, M and T, got {short(cell)}")
            bs, rows, seconds = cell["bs"], cell["M"], cell["T"]
            for key, value in (("bs", bs), ("M", rows)):
                if type(value) is not int or not 1 <= value <= MAX_NS:
                    raise ValueError(f"cell {i}: {key}: expected an int >= 1, got {short(value)}")
            if type(seconds) not in (int, float) or not 0 < seconds <= MAX_NS * 1e-9:
                raise ValueError(f"cell {i}: T: expected seconds above 0 and under 2.147, got {short(seconds)}")
            samples[bs, rows].append(float(seconds))
        cells: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for (bs, rows), seconds_list in sorted(samples.items()):
            cells[bs].append((rows, median(seconds_list)))
        return cls(dict(cells))

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
            ns = np.maximum(1, np.rint(np.interp(np.arange(max_rows + 1), rows, seconds) * 1e9))
            self._rows[key] = torch.from_numpy(ns.astype(np.int32))
        return self._rows[key]

    def measured_rows(self, num_reqs: int) -> int:
        """The most rows that were measured at the nearest bs; beyond them `step_ns` only repeats the last time."""
        return self.cells[self.nearest(num_reqs)][-1][0]
