"""Planning over time, on the host: `Planner` and what it is made of (DESIGN 6).

A step's graph is chosen before its launch, so someone must know the number of rows on the host, from confidences that
are already there: those of an earlier step. `Planner` keeps them and decides; the device then only distributes a given
budget. `_ring` remembers, `_local` plans one rank, `_agreement` makes one of many, `_graphs` holds the keys,
`_identity` proves that ranks agree, `_statistics` compares promise and outcome.
"""

from ._agreement import Agreed, JointRule, Local, MaximumRule
from ._costs import PlanningCost
from ._decision import Decision
from ._graphs import Graph, Graphs
from ._identity import RanksDiffer, fingerprint
from ._ring import LagRing
from ._statistics import Statistics, StepRecord
from .planner import Planner

__all__ = [
    "Agreed",
    "Decision",
    "Graph",
    "Graphs",
    "JointRule",
    "LagRing",
    "Local",
    "MaximumRule",
    "Planner",
    "PlanningCost",
    "RanksDiffer",
    "Statistics",
    "StepRecord",
    "fingerprint",
]
