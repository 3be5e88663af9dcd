"""Operators for confidence-scheduled speculative decoding (DSpark): plan verify lengths, build ragged metadata."""

from ._backends import available_backends, backends, use_backend
from .ops.max_safe_verify_len import max_safe_verify_len

__version__ = "0.1.0"

__all__ = [
    "available_backends",
    "backends",
    "max_safe_verify_len",
    "use_backend",
]
