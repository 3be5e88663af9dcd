"""Cost models: the time of a step with M rows, T(M) = base + row[M] in nanoseconds (DESIGN 3.3 and 5). Host only.

`FloorTable` and `AdditiveTable` read and write SGLang's JSON tables unchanged; `TierTable` is the staircase of captured
graphs. Tables are immutable and validated when they are made, so that a decode step never meets a bad one. Each
table has a `fingerprint`, by which ranks make sure that they plan with the same one.
"""

from .additive import AdditiveTable
from .context import ContextTable
from .corrected import CorrectedTable
from .floor import FloorTable
from .load import load_cost_table, parse_cost_table
from .noise import min_gain_ppm
from .online import OnlineCost
from .step_cost import MAX_NS, StepCost
from .table import CostTable
from .tier import TierGroup, TierTable

__all__ = [
    "MAX_NS",
    "AdditiveTable",
    "ContextTable",
    "CorrectedTable",
    "CostTable",
    "FloorTable",
    "OnlineCost",
    "StepCost",
    "TierGroup",
    "TierTable",
    "load_cost_table",
    "min_gain_ppm",
    "parse_cost_table",
]
