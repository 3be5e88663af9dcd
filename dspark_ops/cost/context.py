"""The context term: what reading the KV cache adds to a step, for any table (`ContextTable`)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .. import _checks
from . import _fields
from .load import inner_table, known
from .step_cost import MAX_NS, Device
from .table import CostTable

_MAX_TOKENS = 1 << 40


@known
class ContextTable(
    CostTable, frozen=True, forbid_unknown_fields=True, dict=True, tag_field="kind", tag="context_table"
):
    """A table measured at one context length, plus the KV tokens that a step reads more (or fewer) than that.

    ``T = T_table + seconds_per_token * (context_tokens - num_reqs * context_per_request)``

    Verify rows of one request read its cache once together, so the term depends on requests and context, not on rows:
    it belongs to `base`. Without it a planner that was profiled at short contexts sees steps that are too cheap, hence
    rows that look too dear, and verifies too little at long ones. No peer has this term (facts/peers.md).

    Args:
        table: of any kind but this one.
        seconds_per_token: time per KV token read, at least 0.
        context_per_request: cached tokens of each request while `table` was measured.
        version: of the file form: 1.
    """

    table: Any
    seconds_per_token: float
    context_per_request: int
    version: int = 1

    def __post_init__(self) -> None:
        _fields.version(self.version)
        table = inner_table("table", self.table)
        if isinstance(table, ContextTable):
            raise TypeError("table: expected a table without a context term, got a ContextTable")
        slope = _fields.finite("seconds_per_token", self.seconds_per_token)
        if not 0 <= slope <= 1:
            raise ValueError(f"seconds_per_token: expected seconds in [0, 1], got {slope}")
        _checks.integer("context_per_request", self.context_per_request, 0, _fields.MAX_PROBE)
        for num_reqs in table.request_probes:
            step = table.base(num_reqs) + int(table.row(0, num_reqs=num_reqs)[0])
            reading = slope * 1e9 * num_reqs * self.context_per_request
            if reading >= step:
                raise ValueError(
                    "seconds_per_token * context_per_request: expected less than the whole step, "
                    f"got {reading:.0f} ns of {step} ns at {num_reqs} requests"
                )
        self._set(table=table, seconds_per_token=slope)

    def row(self, max_rows: int, device: Device = "cpu", num_reqs: int = 1) -> Tensor:
        """The table's own row."""
        return self.table.row(max_rows, device, num_reqs)

    def base(self, num_reqs: int, context_tokens: int | None = None) -> int:
        """The table's base plus the context term in ns; without `context_tokens`, the measured context is taken."""
        base: int = self.table.base(num_reqs)
        if context_tokens is None:
            return base
        _checks.integer("context_tokens", context_tokens, 0, _MAX_TOKENS)
        more = context_tokens - num_reqs * self.context_per_request
        return base + min(round(self.seconds_per_token * 1e9 * more), 2 * MAX_NS)  # more than any step: T is clamped

    def group_of(self, num_reqs: int) -> int:
        """The table's own."""
        return self.table.group_of(num_reqs)

    @property
    def request_probes(self) -> tuple[int, ...]:
        """The table's own."""
        return self.table.request_probes

    @property
    def tiers(self) -> tuple[int, ...]:
        """The table's own."""
        return self.table.tiers

    @property
    def gamma(self) -> int | None:
        """The table's own."""
        return self.table.gamma

    @property
    def is_flat(self) -> bool:
        """Whether T is the same for any number of rows; the context does not matter to that."""
        return self.table.is_flat
