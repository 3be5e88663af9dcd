"""One random case per operator and seed. A family of operators has its generators in a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor

Generator = Callable[[Random], tuple[Any, ...]]
_GENERATORS: dict[str, Generator] = {}


def generator(make: Generator) -> Generator:
    """Register `make(rng) -> args` as the generator of the operator of the same name."""
    _GENERATORS[make.__name__] = make
    return make


def case(stem: str, seed: int) -> tuple[Any, ...]:
    """The arguments of one random call of `stem`; the same seed gives the same case."""
    return _GENERATORS[stem](Random(f"{stem}/{seed}"))


def poison(shape: list[int], dtype: torch.dtype) -> Tensor:
    """An output buffer whose every byte is 0xAB."""
    buffer = torch.empty(shape, dtype=dtype)
    buffer.view(torch.uint8).fill_(0xAB) if buffer.numel() else None
    return buffer


def pick_batch(rng: Random, largest: int = 80) -> int:
    """A request count: often 0, 1 or small, sometimes up to `largest`."""
    return rng.choice([0, 1, 1, 2, 3, rng.randint(2, 9), rng.randint(4, largest)])


def ints(rng: Random, n: int, low: int, high: int, dtype: torch.dtype = torch.int32) -> Tensor:
    """n random integers in [low, high]."""
    return torch.tensor([rng.randint(low, high) for _ in range(n)], dtype=dtype)


def index_dtype(rng: Random) -> torch.dtype:
    """int32 or int64."""
    return rng.choice([torch.int32, torch.int64])


from . import accept, compressor, layout, planning  # noqa: E402, F401  (they register themselves, and need the names above)
