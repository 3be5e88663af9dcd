"""Operators for confidence-scheduled speculative decoding (DSpark): plan verify lengths, build ragged metadata."""

from ._backends import available_backends, backends, use_backend
from .ops.allocate_verify_lens import Plan, allocate_verify_lens
from .ops.max_safe_verify_len import max_safe_verify_len
from .ops.plan_budget import plan_budget
from .ops.prefix_survival import prefix_survival
from .ops.schedule_verify_lens import Schedule, schedule_verify_lens

__version__ = "0.1.0"

__all__ = [
    "Plan",
    "Schedule",
    "allocate_verify_lens",
    "available_backends",
    "backends",
    "max_safe_verify_len",
    "plan_budget",
    "prefix_survival",
    "schedule_verify_lens",
    "use_backend",
]
