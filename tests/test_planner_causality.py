"""Whether a draft is verified must not depend on its own future: what makes a plan lossless under sampled acceptance.

Confidence k depends on the drafts before draft k. So a plan keeps the target's distribution if, whatever a request's
confidences from some draft on are, the same of its drafts before are verified (DESIGN 3.4). What follows from it is
shown for the operator in tests/test_losslessness.py; here every way in which a `Planner` sets a budget is held to it.
A fill is no exception: more budget, the more rows are filled, so the last row in question is still decided by the rows
before it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from planner_cases import GAMMA, table

from dspark_ops import Planner

SLOTS = 3
GRAPHS = [(rows, SLOTS) for rows in (3, 5, 7, 9, 12)]
# Two steps up, then more rows for little: whether a first draft pays depends on those after it.
COST = table((1, 1.0), (4, 1.3), (5, 1.31), (6, 1.6), (7, 1.62), (8, 1.64), (9, 1.66), (10, 1.9), (12, 1.91), (64, 9.0))


def lens_of(now: torch.Tensor, past: torch.Tensor, force: float | None, **options: Any) -> torch.Tensor:
    """What is verified of three requests with these confidences, the step before having had those of `past`."""
    planner = Planner(COST, gamma=GAMMA, slots=SLOTS, bypass=False, **options)
    planner.force(force)
    slots = torch.arange(SLOTS)
    planner.observe(slots, past if planner._lag else now)
    plan = planner.allocate(planner.decide(slots), now)
    assert plan is not None
    return plan.verify_lens


def looked_ahead(force: float | None = None, cases: int = 200, **options: Any) -> int:
    """In how many cases a draft's own future changed whether it is verified."""
    g = torch.Generator().manual_seed(3)
    found = 0
    for case in range(cases):
        past, now, other = (torch.rand(SLOTS, GAMMA, generator=g) ** 0.5 for _ in range(3))
        request, draft = case % SLOTS, case % (GAMMA - 1)
        changed = now.clone()
        changed[request, draft + 1 :] = other[request, draft + 1 :] if case % 4 else 1.0
        lens = [lens_of(c, past, force, **options)[request].clamp(max=draft + 2) for c in (now, changed)]
        found += int(lens[0] != lens[1])
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"graphs": GRAPHS},
        {"graphs": GRAPHS, "rule": "joint"},
        {"graphs": GRAPHS, "force": 0.4},
        {"max_rows": 8, "force": 1.0},
        {"graphs": GRAPHS, "max_rows": 8},
        {"lag": 0, "search": "first_drop"},
        {"lag": 0, "search": "first_drop", "graphs": GRAPHS},
        {"lag": 0, "search": "first_drop", "graphs": GRAPHS, "min_verify_len": 2, "max_rows": 11},
        {"lag": 0, "search": "first_drop", "graphs": GRAPHS, "fill_tier": False},
    ],
    ids=str,
)
def test_no_draft_depends_on_its_own_future(options: dict[str, Any]) -> None:
    assert looked_ahead(**options) == 0


@pytest.mark.parametrize("options", [{}, {"graphs": GRAPHS}, {"graphs": GRAPHS, "rule": "joint"}], ids=str)
def test_a_global_search_on_current_confidences_does(options: dict[str, Any]) -> None:
    """Which is why lag 0 must name it: it is for greedy acceptance only."""
    assert looked_ahead(lag=0, search="global", **options) > 0
