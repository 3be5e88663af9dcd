"""The plan once more, by its definition, in Python integers and fractions: slow, and independent of the package."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

ONE = 1 << 43


def q43(s: float) -> int:
    return math.floor(Fraction(float(s)) * ONE)


def survival(confidence: list[list[float]]) -> list[list[float]]:
    """The float32 product, strictly left to right."""
    rows = []
    for row in confidence:
        product, out = np.float32(1), []
        for c in row:
            c = np.float32(0) if not c > 0 else min(np.float32(c), np.float32(1))
            product = np.float32(product * c)
            product = np.float32(0) if product < 2.0**-100 else product
            out.append(float(product))
        rows.append(out)
    return rows


@dataclass
class Rules:
    caps: list[int] | None = None
    min_len: int = 1
    max_len: int | None = None
    eps: float = 1e-6
    max_rows: int | None = None


@dataclass
class Oracle:
    """The ordered candidates of one decision."""

    s: list[list[float]]
    rules: Rules
    cap: list[int] = field(init=False)
    floor: list[int] = field(init=False)
    order: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        rules, width = self.rules, len(self.s[0]) + 1 if self.s else 1
        limit = rules.max_len or width
        self.cap = [max(0, min(limit, rules.caps[r] if rules.caps else limit)) for r in range(len(self.s))]
        self.floor = [min(max(rules.min_len, 1), c) for c in self.cap]
        eps = np.float32(rules.eps)
        found = [
            (-v, k, r)
            for r, row in enumerate(self.s)
            for k, v in enumerate(row)
            if self.floor[r] <= k + 1 < self.cap[r] and v >= eps
        ]
        self.order = [(r, k) for _, k, r in sorted(found)]

    @property
    def min_rows(self) -> int:
        return sum(self.floor)

    def tau(self, budget: int) -> int:
        mandatory = sum(q43(self.s[r][k]) for r, f in enumerate(self.floor) for k in range(f - 1))
        active = sum(c > 0 for c in self.cap)
        return active * ONE + mandatory + sum(q43(self.s[r][k]) for r, k in self.order[:budget])

    def most(self) -> int:
        most = sum(self.cap) - self.min_rows
        if self.rules.max_rows is not None:
            most = min(most, max(0, self.rules.max_rows - self.min_rows))
        return most

    def best_budget(self, step_ns: list[int], base: int = 0, first_drop: bool = False, ppm: int = 0) -> int:
        limit = min(len(self.order), self.most())

        def time(b: int) -> int:
            index = max(0, min(self.min_rows + b, len(step_ns) - 1))
            return max(1, min(base + step_ns[index], (1 << 31) - 1))

        ratio = [Fraction(self.tau(b), time(b)) for b in range(limit + 1)]
        if first_drop:
            best = 0
            while best < limit and ratio[best + 1] > ratio[best]:
                best += 1
            return best
        best = ratio.index(max(ratio))
        if ppm and not ratio[best] * 10**6 > ratio[limit] * (10**6 + ppm):
            return limit
        return best

    def lens(self, budget: int) -> list[int]:
        lens = list(self.floor)
        for r, _ in self.order[: max(0, min(budget, self.most()))]:
            lens[r] += 1
        return lens
