"""A table corrected by observed step times (`CorrectedTable`): what `OnlineCost` publishes and sends to ranks."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from . import _fields
from .load import inner_table, known
from .step_cost import MAX_NS, Device
from .table import CostTable
from .tier import TierTable


@known
class CorrectedTable(
    CostTable, frozen=True, forbid_unknown_fields=True, dict=True, tag_field="kind", tag="corrected_table"
):
    """A staircase of corrected times, and the corrected table's own dependence on requests and context.

    With b the num_reqs of the group of B: ``T = steps.row[M] + base_scale * (table.base(B, context) - table.base(b))``.

    Args:
        steps: corrected times of whole steps.
        base_scale: how much of the table's own dependence: in [2^-40, 2^40].
        table: the table that was corrected.
        version: of the file form: 1.
    """

    steps: TierTable
    base_scale: float
    table: Any
    version: int = 1

    def __post_init__(self) -> None:
        _fields.version(self.version)
        if not isinstance(self.steps, TierTable):
            raise TypeError(f"steps: expected a TierTable, got {type(self.steps).__name__}")
        table = inner_table("table", self.table)
        if isinstance(table, CorrectedTable):
            raise TypeError("table: expected a table that is not corrected itself, got a CorrectedTable")
        scale = _fields.finite("base_scale", self.base_scale)
        if not 2.0**-40 <= scale <= 2.0**40:
            raise ValueError(f"base_scale: expected a number in [2^-40, 2^40], got {scale}")
        self._set(table=table, base_scale=scale)

    def row(self, max_rows: int, device: Device = "cpu", num_reqs: int = 1) -> Tensor:
        """The corrected staircase of the group of num_reqs."""
        return self.steps.row(max_rows, device, num_reqs)

    def base(self, num_reqs: int, context_tokens: int | None = None) -> int:
        """What B and the context add to the group's own step, in ns; may be negative."""
        group = self.steps.groups[self.steps.group_of(num_reqs)]
        more = self.table.base(num_reqs, context_tokens) - self.table.base(group.num_reqs)
        return max(-MAX_NS, min(round(self.base_scale * more), 2 * MAX_NS))

    def group_of(self, num_reqs: int) -> int:
        """The staircase's own."""
        return self.steps.group_of(num_reqs)

    @property
    def request_probes(self) -> tuple[int, ...]:
        """The staircase's own."""
        return self.steps.request_probes

    @property
    def tiers(self) -> tuple[int, ...]:
        """The staircase's own."""
        return self.steps.tiers

    @property
    def gamma(self) -> int | None:
        """γ of the corrected table."""
        return self.table.gamma

    @property
    def is_flat(self) -> bool:
        """Whether T is the same for any number of rows, as far as is known now."""
        return self.steps.is_flat
