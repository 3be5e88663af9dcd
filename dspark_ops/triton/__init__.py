"""Triton back end: `<stem>.py` holds the kernels of an operator and `<stem>`, which launches them.

The functions take the arguments of the dispatcher schema, already checked, and are imported at the first call. The same
kernels serve CUDA and ROCm and, under TRITON_INTERPRET=1, a CPU.
"""

from ._warmup import batches, warmup

__all__ = ["batches", "warmup"]
