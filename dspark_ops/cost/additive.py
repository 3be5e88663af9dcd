"""SGLang's additive cost table."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from .. import _checks
from . import _fields
from ._lookup import line_ns, linear_at
from .load import known
from .step_cost import MAX_NS
from .table import CostTable


@known
class AdditiveTable(CostTable, frozen=True, forbid_unknown_fields=True, dict=True):
    """SGLang's additive table: T = bias + alpha(requests) + theta(rows), each linear between probes, flat outside.

    ``base = rint(1e9 * (bias + alpha(B)))`` and ``row[M] = rint(1e9 * theta(M))``, so T is within 1 ns of the sum.

    Args:
        bias_seconds: positive.
        bs_probes, alpha_seconds: cost by requests; probes strictly increasing, values of any sign.
        m_probes, theta_seconds: cost by rows; likewise. Every sum T must lie in (0, 2^31 - 1 ns].
    """

    bias_seconds: float
    bs_probes: Sequence[int]
    alpha_seconds: Sequence[float]
    m_probes: Sequence[int]
    theta_seconds: Sequence[float]

    def __post_init__(self) -> None:
        bias = _fields.finite("bias_seconds", self.bias_seconds)
        if bias <= 0:
            raise ValueError(f"bias_seconds: expected a number > 0, got {bias}")
        bs_probes = _fields.probes("bs_probes", self.bs_probes)
        alpha = _fields.per_probe("alpha_seconds", self.alpha_seconds, "bs_probes", len(bs_probes))
        m_probes = _fields.probes("m_probes", self.m_probes)
        theta = _fields.per_probe("theta_seconds", self.theta_seconds, "m_probes", len(m_probes))
        for i, seconds in enumerate(theta):
            if not -MAX_NS <= seconds * 1e9 <= MAX_NS:
                raise ValueError(f"theta_seconds[{i}]: expected a time that fits int32 nanoseconds, got {seconds}")
        shortest, longest = bias + min(alpha) + min(theta), bias + max(alpha) + max(theta)
        if shortest <= 0 or longest * 1e9 > MAX_NS:
            raise ValueError(
                "bias_seconds + alpha_seconds + theta_seconds: expected every sum in (0, 2.147483647] seconds, "
                f"got sums from {shortest} to {longest}"
            )
        self._set(bias_seconds=bias, bs_probes=bs_probes, alpha_seconds=alpha, m_probes=m_probes, theta_seconds=theta)

    def _build_row(self, max_rows: int, group: int) -> Tensor:
        return line_ns(self.m_probes, self.theta_seconds, max_rows)

    def base(self, num_reqs: int, context_tokens: int | None = None) -> int:
        """bias + alpha(num_reqs) in ns; the table has no context term."""
        _checks.integer("num_reqs", num_reqs, 0)
        return round((self.bias_seconds + linear_at(self.bs_probes, self.alpha_seconds, num_reqs)) * 1e9)

    @property
    def request_probes(self) -> tuple[int, ...]:
        """bs_probes."""
        return tuple(self.bs_probes)

    @property
    def is_flat(self) -> bool:
        """Whether T is the same for any number of rows (alpha may still differ by requests)."""
        return len({round(theta * 1e9) for theta in self.theta_seconds}) == 1
