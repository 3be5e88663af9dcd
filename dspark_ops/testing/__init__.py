"""Random and adversarial operator inputs, and the comparison with the reference that the tests and `check` share.

A case is the argument tuple of `torch.ops.dspark.<stem>`, outputs included; outputs come filled with `POISON` bytes,
so that an element a back end forgets to write shows up as a difference.
"""

from .compare import Mismatch, compare, run, written
from .generate import case, generator, poison

__all__ = ["Mismatch", "case", "compare", "generator", "poison", "run", "written"]
