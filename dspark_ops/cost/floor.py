"""SGLang's one-dimensional cost table."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from .. import _checks
from . import _fields
from ._lookup import stairs
from .load import known
from .step_cost import MAX_NS
from .table import CostTable


@known
class FloorTable(CostTable, frozen=True, forbid_unknown_fields=True, dict=True):
    """SGLang's one-dimensional table: steps per second at the largest probe that is not above M, the first below it.

    Args:
        sample_batch_tokens: probes, rows of a step, strictly increasing.
        sample_steps_per_sec: steps per second at each probe, positive; a step may take up to 2^31 - 1 ns.
        max_batch_tokens: the rows the table is meant for, at least the last probe. Past it the last probe still holds.
    """

    sample_batch_tokens: Sequence[int]
    sample_steps_per_sec: Sequence[float]
    max_batch_tokens: int

    def __post_init__(self) -> None:
        probes = _fields.probes("sample_batch_tokens", self.sample_batch_tokens)
        speeds = _fields.per_probe(
            "sample_steps_per_sec", self.sample_steps_per_sec, "sample_batch_tokens", len(probes)
        )
        for i, speed in enumerate(speeds):
            if speed * MAX_NS < 1e9:
                expected = "a positive speed whose step fits int32 nanoseconds (at least 0.4657)"
                raise ValueError(f"sample_steps_per_sec[{i}]: expected {expected}, got {speed}")
        _checks.integer("max_batch_tokens", self.max_batch_tokens, probes[-1], _fields.MAX_PROBE)
        self._set(sample_batch_tokens=probes, sample_steps_per_sec=speeds)

    def _probe_ns(self) -> list[int]:
        return [max(1, round(1e9 / speed)) for speed in self.sample_steps_per_sec]

    def _build_row(self, max_rows: int, group: int) -> Tensor:
        ends = [*(probe - 1 for probe in self.sample_batch_tokens[1:]), max_rows]
        return stairs(ends, self._probe_ns(), max_rows)

    @property
    def is_flat(self) -> bool:
        """Whether T is the same for any number of rows, as in an uninitialised table: planning then verifies all."""
        return len(set(self._probe_ns())) == 1
