"""Replays of recorded decode steps: what a way of planning would have given (it needs numpy, for traces).

`demo` runs every operator on a trace and checks that they keep their promises; `study` compares budgets, policies, lags
and costs over time, requests coming and going; `ranks` compares the agreements of data-parallel ranks.
"""

from .demo import (
    HEADS,
    NOTE,
    SEARCHES,
    Options,
    Step,
    Totals,
    Violation,
    accept_capped,
    accept_compact,
    accept_static,
    best_fixed,
    check_same_commit,
    plan_step,
    replay,
    step_rows,
    steps_of,
)

__all__ = [
    "HEADS",
    "NOTE",
    "SEARCHES",
    "Options",
    "Step",
    "Totals",
    "Violation",
    "accept_capped",
    "accept_compact",
    "accept_static",
    "best_fixed",
    "check_same_commit",
    "plan_step",
    "replay",
    "step_rows",
    "steps_of",
]
