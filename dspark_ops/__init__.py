"""Operators for confidence-scheduled speculative decoding (DSpark): plan verify lengths, build ragged metadata."""

from ._backends import available_backends, backends, use_backend
from .ascend_metadata import AscendTable, AscendVerifyMetadata, StateBlocks, StateRing, ascend_verify_metadata
from .cost import AdditiveTable, ContextTable, FloorTable, OnlineCost, StepCost, TierGroup, TierTable, load_cost_table
from .ops._accepted import Accepted
from .ops.accept_greedy import accept_greedy
from .ops.allocate_verify_lens import Plan, allocate_verify_lens
from .ops.compressor_layout import CompressorEntries, CompressorLayout, CompressorTable, compressor_layout
from .ops.finalize_accept import finalize_accept
from .ops.gather_from_strided import gather_from_strided
from .ops.max_safe_verify_len import max_safe_verify_len
from .ops.pad_to_bucket import PaddedLens, capture_lens, pad_to_bucket
from .ops.plan_budget import plan_budget
from .ops.prefix_survival import prefix_survival
from .ops.ragged_layout import RaggedLayout, ragged_layout
from .ops.scatter_to_strided import scatter_to_strided
from .ops.schedule_verify_lens import Schedule, schedule_verify_lens
from .ops.state_rows import state_blocks, state_rows
from .ops.update_offset import update_offset
from .planner import Decision, Planner, RanksDiffer

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "AdditiveTable",
    "AscendTable",
    "AscendVerifyMetadata",
    "CompressorEntries",
    "CompressorLayout",
    "CompressorTable",
    "ContextTable",
    "Decision",
    "FloorTable",
    "OnlineCost",
    "PaddedLens",
    "Plan",
    "Planner",
    "RaggedLayout",
    "RanksDiffer",
    "Schedule",
    "StateBlocks",
    "StateRing",
    "StepCost",
    "TierGroup",
    "TierTable",
    "accept_greedy",
    "allocate_verify_lens",
    "ascend_verify_metadata",
    "available_backends",
    "backends",
    "capture_lens",
    "compressor_layout",
    "finalize_accept",
    "gather_from_strided",
    "load_cost_table",
    "max_safe_verify_len",
    "pad_to_bucket",
    "plan_budget",
    "prefix_survival",
    "ragged_layout",
    "scatter_to_strided",
    "schedule_verify_lens",
    "state_blocks",
    "state_rows",
    "update_offset",
    "use_backend",
]
