"""Cases of the compressor operators."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

from .generate import generator, index_dtype, ints, pick_batch, poison


@generator
def max_safe_verify_len(rng: Random) -> tuple[Any, ...]:
    batch = pick_batch(rng)
    ratio, coff = rng.choice([(4, 2), (128, 1), (1, 1), (7, 3)])
    low, high = rng.choice([(0, 3 * ratio), (0, 1 << 20), (-5, 5), ((1 << 31) - 300, (1 << 31) - 1)])
    start_pos = ints(rng, batch, low, high, index_dtype(rng))
    ring = rng.choice([0, 0, coff * ratio, coff * ratio + 8, 16])
    return start_pos, ratio, coff, ring, rng.choice([1, 2, 8, 16, 1 << 18]), poison([batch], torch.int32)
