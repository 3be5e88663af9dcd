"""Operators for confidence-scheduled speculative decoding (DSpark): plan verify lengths, build ragged metadata."""

from ._backends import available_backends, backends, use_backend
from .cost import AdditiveTable, FloorTable, StepCost, load_cost_table
from .ops._accepted import Accepted
from .ops.accept_greedy import accept_greedy
from .ops.allocate_verify_lens import Plan, allocate_verify_lens
from .ops.finalize_accept import finalize_accept
from .ops.max_safe_verify_len import max_safe_verify_len
from .ops.plan_budget import plan_budget
from .ops.prefix_survival import prefix_survival
from .ops.schedule_verify_lens import Schedule, schedule_verify_lens
from .ops.update_offset import update_offset

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "AdditiveTable",
    "FloorTable",
    "Plan",
    "Schedule",
    "StepCost",
    "accept_greedy",
    "allocate_verify_lens",
    "available_backends",
    "backends",
    "finalize_accept",
    "load_cost_table",
    "max_safe_verify_len",
    "plan_budget",
    "prefix_survival",
    "schedule_verify_lens",
    "update_offset",
    "use_backend",
]
