"""What the benchmark times: one operator at one size, the rival's calls for the same result, and their agreement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import torch
from timing import Call

ROTATE = 8  # inputs taken in turn
Rival = SimpleNamespace | None


def _agree() -> None:
    """Nothing to compare with."""


@dataclass(frozen=True)
class Case:
    """One line of the benchmark. `check` raises unless ours and every rival's results agree."""

    op: str
    batch: int
    gamma: int
    ours: Call
    rivals: dict[str, Call] = field(default_factory=dict)
    check: Callable[[], None] = _agree
    tier: int | None = None
    bytes_moved: int = 0


def equal(a: torch.Tensor, b: torch.Tensor, what: str) -> None:
    """Raise unless both hold the same numbers (dtypes may differ)."""
    if not torch.equal(a.to(torch.float64), b.to(torch.float64)):
        raise AssertionError(f"{what}: ours and the rival's results differ, so their times cannot be compared")


def all_equal(ours: Call, rival: Call, pick: Callable[[object], tuple[torch.Tensor, ...]], what: str) -> None:
    """Raise unless both agree on every input; `pick` takes from our result what the rival returns."""
    for i in range(ROTATE):
        for a, b in zip(pick(ours(i)), rival(i), strict=True):
            equal(a, b, what)


def random(seed: int) -> torch.Generator:
    """A generator of its own for each case, so that a case does not depend on those before it."""
    return torch.Generator().manual_seed(seed)


def verify_lens(batch: int, width: int, seed: int) -> list[torch.Tensor]:
    """Random lengths in [1, N]."""
    g = random(seed)
    return [torch.randint(1, width + 1, (batch,), generator=g, dtype=torch.int32) for _ in range(ROTATE)]


def cumulative(lens: torch.Tensor) -> torch.Tensor:
    """int32 [B + 1], exclusive prefix sums."""
    return torch.cat([torch.zeros(1, dtype=torch.int32), lens.cumsum(0, dtype=torch.int32)])
