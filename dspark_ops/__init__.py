"""Operators for confidence-scheduled speculative decoding (DSpark): plan verify lengths, build ragged metadata."""

from ._backends import available_backends, backends, use_backend
from .ops.compressor_layout import CompressorEntries, CompressorLayout, CompressorTable, compressor_layout
from .ops.gather_from_strided import gather_from_strided
from .ops.max_safe_verify_len import max_safe_verify_len
from .ops.pad_to_bucket import PaddedLens, capture_lens, pad_to_bucket
from .ops.ragged_layout import RaggedLayout, ragged_layout
from .ops.scatter_to_strided import scatter_to_strided
from .ops.state_rows import state_blocks, state_rows

__version__ = "0.1.0"

__all__ = [
    "CompressorEntries",
    "CompressorLayout",
    "CompressorTable",
    "PaddedLens",
    "RaggedLayout",
    "available_backends",
    "backends",
    "capture_lens",
    "compressor_layout",
    "gather_from_strided",
    "max_safe_verify_len",
    "pad_to_bucket",
    "ragged_layout",
    "scatter_to_strided",
    "state_blocks",
    "state_rows",
    "use_backend",
]
