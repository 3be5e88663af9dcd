"""Damaged files: a few hundred small corruptions of a valid one, and what a loader may do with them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path


def check_damaged(load: Callable[[Path], object], valid: Path, rounds: int) -> int:
    """Load damaged copies of a file: each gives a result or a ValueError that names it. Returns the number refused."""
    whole, refused = valid.read_bytes(), 0
    path = valid.with_name(f"damaged{valid.suffix}")
    for seed in range(rounds):
        rng = random.Random(seed)
        data = bytearray(whole[: rng.randrange(len(whole))] if seed % 4 == 0 else whole)
        for _ in range(rng.choice((0, 1, 1, 2, 8)) if seed % 4 == 0 else rng.choice((1, 1, 2, 8))):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            load(path)
        except ValueError as error:
            assert str(error).startswith(f"{path}: "), f"seed {seed}: {error}"
            refused += 1
    return refused
