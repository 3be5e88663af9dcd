"""What a planner asks of a cost model (`StepCost`): any object with these members can be given to the operators."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

Device = str | torch.device

MAX_NS = (1 << 31) - 1


@runtime_checkable
class StepCost(Protocol):
    """T(M) = base + row[M] in ns, which kernels clamp into [1, 2^31 - 1].

    A model that was made for one γ may say so in an attribute `gamma`; the operators then refuse any other.
    """

    def row(self, max_rows: int, device: Device = "cpu", num_reqs: int = 1) -> Tensor:
        """Token-side cost in ns by rows, int32 [max_rows + 1]; cached and shared, so never write to it."""

    def base(self, num_reqs: int, context_tokens: int | None = None) -> int:
        """The rest of the step in ns: what depends on the requests and their context, not on the rows.

        `context_tokens` is the sum of cached tokens over the requests of the step: the KV that it reads.
        """

    @property
    def is_flat(self) -> bool:
        """Whether T is the same for any number of rows. A planner then always verifies everything."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of the content: equal on two ranks exactly if they plan with the same table."""
