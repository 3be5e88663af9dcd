"""What the benchmark times: one operator at one size, the rival's calls for the same result, and their agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import torch
from timing import Call

import dspark_ops
from dspark_ops.testing.compare import assert_same

ROTATE = 8  # inputs taken in turn
Rival = SimpleNamespace | None


def _agree() -> None:
    """Nothing to compare with."""


@dataclass(frozen=True)
class Case:
    """One line of the benchmark.

    `check` raises unless ours and every rival's results agree. `state` are the tensors that a call updates in place.
    """

    op: str
    batch: int
    gamma: int
    ours: Call
    rivals: dict[str, Call] = field(default_factory=dict)
    check: Callable[[], None] = _agree
    tier: int | None = None
    bytes_moved: int = 0
    state: tuple[torch.Tensor, ...] = ()


def tensors(result: object) -> Iterator[torch.Tensor]:
    """The tensors of a result, which may be a tensor, a tuple, or tuples and lists of them."""
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, tuple | list):
        for part in result:
            yield from tensors(part)


def equals_reference(case: Case) -> None:
    """Raise Mismatch unless ours gives what the reference gives, bit for bit, on every input and in the state."""
    before = [t.clone() for t in case.state]

    def result(i: int) -> list[torch.Tensor]:
        for t, start in zip(case.state, before, strict=True):
            t.copy_(start)
        return [*tensors(case.ours(i)), *case.state]

    for i in range(ROTATE):
        with dspark_ops.use_backend("reference"):
            written = result(i)
            want = [t.clone() for t in written]
        for t in written:  # workspaces are reused: without this, the reference's results would still be in them
            t.view(torch.uint8).fill_(0xAB)
        for k, (a, b) in enumerate(zip(result(i), want, strict=True)):
            assert_same(case.op, f"result {k} ", a, b)


def close(a: torch.Tensor, b: torch.Tensor, relative: float, what: str) -> None:
    """Raise unless both hold the same numbers within a relative tolerance."""
    if not torch.allclose(a, b, rtol=relative, atol=0.0):
        raise AssertionError(f"{what}: ours and the rival's results differ by more than {relative:g} of their value")


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
