"""`Samples`: what a calibration is fitted to and judged by - raw logits, and how many drafts were accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..metrics import prefix_outcome

if TYPE_CHECKING:  # reading a trace needs numpy, which a serving runtime may lack
    from ..trace import Trace

GREEDY, SAMPLED = "greedy", "sampled"
ACCEPTANCES = (GREEDY, SAMPLED)


def check_acceptance(value: str) -> str:
    """`value`, or ValueError: "the draft equals the target's argmax" and "rejection sampling kept it" differ."""
    if value not in ACCEPTANCES:
        raise ValueError(f"acceptance: expected one of {', '.join(ACCEPTANCES)}, got {value!r}")
    return value


def recorded_acceptance(trace: Trace) -> str:
    """The event that a trace's `correct_len` counts: greedy, if it is the argmax match in every step."""
    return GREEDY if (trace.correct_len == trace.argmax_prefix_len).all() else SAMPLED


@dataclass(frozen=True, eq=False)
class Samples:
    """Request-steps whose drafts were all verified.

    Args:
        logits: z, raw (uncalibrated) confidence logits, float [S, γ], finite.
        correct_len: accepted drafts, integer [S], 0..γ; not cut by a verify length.
        acceptance: which event `correct_len` counts, "greedy" or "sampled".
        request: integer [S], whose step it is, the steps of a request in the order they were taken. Default: unknown;
            the per-request offset needs it.
    """

    logits: Tensor
    correct_len: Tensor
    acceptance: str
    request: Tensor | None = None

    def __post_init__(self) -> None:
        check_acceptance(self.acceptance)
        if self.logits.dim() != 2 or self.logits.shape[1] == 0 or not self.logits.is_floating_point():
            raise ValueError(f"logits: expected float [S, γ], got {self.logits.dtype} {list(self.logits.shape)}")
        steps, gamma = self.logits.shape
        for name, t in (("correct_len", self.correct_len), ("request", self.request)):
            if t is not None and (list(t.shape) != [steps] or t.is_floating_point() or t.dtype == torch.bool):
                raise ValueError(f"{name}: expected integers of shape [{steps}], got {t.dtype} {list(t.shape)}")
        if not self.logits.isfinite().all():
            raise ValueError("logits: expected finite values, got NaN or infinity")
        if steps and not 0 <= int(self.correct_len.min()) <= int(self.correct_len.max()) <= gamma:
            raise ValueError(f"correct_len: expected values in [0, {gamma}]")

    def __len__(self) -> int:
        return len(self.logits)

    @property
    def gamma(self) -> int:
        """γ, drafts per step."""
        return self.logits.shape[1]

    @property
    def outcome(self) -> Tensor:
        """bool [S, γ]: whether the accepted prefix covers draft k."""
        return prefix_outcome(self.correct_len, self.gamma)

    def __getitem__(self, rows: Tensor) -> Samples:
        request = None if self.request is None else self.request[rows]
        return Samples(self.logits[rows], self.correct_len[rows], self.acceptance, request)

    def requests(self) -> list[Tensor]:
        """The rows of each request, in the order of its steps; requests in the order of their first step."""
        if self.request is None:
            raise ValueError("samples: expected to know the request of each step (record with request_ids=)")
        rows: dict[int, list[int]] = {}
        for row, request in enumerate(self.request.tolist()):
            rows.setdefault(request, []).append(row)
        return [torch.tensor(r) for r in rows.values()]

    def check_joins(self, other: Samples) -> None:
        """Raise ValueError unless `other` has the same γ and holds the same event."""
        if other.gamma != self.gamma:
            raise ValueError(f"samples: expected γ = {self.gamma} in every part, got {other.gamma}")
        if other.acceptance != self.acceptance:
            raise ValueError(
                f"samples: {self.acceptance} and {other.acceptance} acceptance are different events, "
                "expected parts of one"
            )

    @classmethod
    def concatenate(cls, parts: Sequence[Samples]) -> Samples:
        """One after the other; ValueError unless all have the same γ and hold the same event."""
        if not parts:
            raise ValueError("samples: expected at least one part, got none")
        for part in parts[1:]:
            parts[0].check_joins(part)
        requests = [p.request for p in parts if p.request is not None]
        return cls(
            torch.cat([p.logits for p in parts]),
            torch.cat([p.correct_len for p in parts]),
            parts[0].acceptance,
            torch.cat(requests) if len(requests) == len(parts) else None,
        )

    @classmethod
    def from_trace(cls, trace: Trace, head: str = "z", acceptance: str | None = None) -> Samples:
        """The steps of a recorded trace.

        Args:
            trace: a `Trace`.
            head: which logits, "z" or "z_refit".
            acceptance: the event; default the one that decoding used. "greedy" on a sampled trace takes the prefix
                that matches the target's argmax, as SGLang's collector does whatever the server samples. A greedy
                trace does not tell what sampling would have accepted.
        """
        if head not in ("z", "z_refit"):
            raise ValueError(f"head: expected z or z_refit, got {head!r}")
        recorded = recorded_acceptance(trace)
        wanted = recorded if acceptance is None else check_acceptance(acceptance)
        if recorded == GREEDY and wanted == SAMPLED:
            raise ValueError("acceptance: expected greedy, which is all that a greedy trace tells, got 'sampled'")
        lengths = trace.correct_len if wanted == recorded else trace.argmax_prefix_len
        return cls(
            torch.from_numpy(getattr(trace, head)),
            torch.from_numpy(lengths.astype("int64")),
            wanted,
            torch.from_numpy(trace.request_id.astype("int64")),
        )
