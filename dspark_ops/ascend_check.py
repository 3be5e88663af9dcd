"""`dspark-ops check-metadata`: every field of random verify steps, on a device, against the reference on the CPU."""

from __future__ import annotations

import time
from contextlib import nullcontext
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import _backends, _checks
from .ascend_metadata import AscendTable, AscendVerifyMetadata, StateBlocks, StateRing, ascend_verify_metadata
from .check import FIRST_SEED, Outcome
from .ops.compressor_layout import CompressorTable
from .testing.compare import assert_same

_CONTEXT, _PAGES, _BLOCKS, _BLOCK, _WINDOW = 600, 40, 80, 8, 128


class Step(NamedTuple):
    """The arguments of one call."""

    verify_lens: Tensor
    start_pos: Tensor
    rows: int
    width: int
    tables: list[AscendTable]


def _ints(rng: Random, shape: list[int], low: int, high: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.randint(
        low, high + 1, shape, dtype=dtype, generator=torch.Generator().manual_seed(rng.getrandbits(32))
    )


def _tables(rng: Random, slots: int) -> list[AscendTable]:
    made = []
    for ratio, coff, page, ring_rows in ((4, 2, 32, 16), (128, 1, 1, 256)):
        maps: tuple[Any, ...] = (None, None, None)
        if ratio == 4:
            to_window = _ints(rng, [2000], -1, 9999, torch.int64)
            maps = _ints(rng, [8, _CONTEXT], 0, 1999), to_window, _WINDOW
        ring = StateRing(_ints(rng, [slots], 0, 7, torch.int64), ring_rows, 77_777, *maps)
        blocks = StateBlocks(_ints(rng, [slots, _BLOCKS], 1, 9999), _BLOCK)
        made.append(
            AscendTable(CompressorTable(ratio, _ints(rng, [slots, _PAGES], 1, 999), page, 0), coff, ring, blocks)
        )
    return made


def random_steps(rng: Random) -> tuple[list[Step], dict[str, Any]]:
    """Steps of one captured size, or one eager step; the options of the call."""
    width, slots, graph = rng.choice([2, 5, 8]), rng.randint(1, 40), rng.random() < 0.7
    rows = slots * rng.randint(1, width)
    steps = []
    for _ in range(4 if graph else 1):
        batch = rng.randint(0, slots) if graph else slots
        lens = _ints(rng, [batch], 0, width)
        while lens.sum() > rows:
            lens -= (lens > 0).int()
        start = _ints(rng, [slots], 0, _CONTEXT - 2 * width, rng.choice([torch.int32, torch.int64]))
        start[batch:] = 0
        steps.append(Step(lens, start, rows if graph else int(lens.sum()), width, _tables(rng, slots)))
    return steps, {"graph": graph, "num_slots": slots if graph else None}


def _to(value: Any, device: str) -> Any:
    """The value with its tensors on the device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_to(part, device) for part in value))
    return [_to(part, device) for part in value] if isinstance(value, list) else value


def _named(value: Any, name: str) -> dict[str, Tensor]:
    """Every tensor of a result by its path."""
    if isinstance(value, Tensor):
        return {name: value}
    parts = value._asdict() if hasattr(value, "_fields") else dict(enumerate(value)) if isinstance(value, tuple) else {}
    return {k: t for key, part in parts.items() for k, t in _named(part, f"{name}.{key}").items()}


def check_steps(seed: int, device: str) -> None:
    """Raise Mismatch where a step on the device differs; steps of a graph share one set of buffers."""
    steps, options = random_steps(Random(f"ascend_verify_metadata/{seed}"))
    out: AscendVerifyMetadata | None = None
    for number, step in enumerate(steps):
        with _backends.use_backend("reference"):
            want = _named(ascend_verify_metadata(*step, **options), "metadata")
        out = ascend_verify_metadata(*_to(step, device), **options, out=out)
        got = _named(out, "metadata")
        for name, expected in want.items():
            if not name.startswith("metadata.scratch"):
                assert_same("ascend_verify_metadata", f"step {number}, {name}", got[name].cpu(), expected)


def check_metadata(backend: str | None = None, seconds: float = 10.0) -> Outcome:
    """Random steps for so long, one at least, on the back end's device; None means the CPU as it is.

    Raises ValueError if there is no such back end, RuntimeError if it cannot run here or lacks an operator.
    """
    _checks.number("seconds", seconds, 0, 86400)
    device = "cpu" if backend is None else _backends.get_backend(backend).device or "cpu"
    outcome, seed, deadline = Outcome(f"random metadata ({backend or device})"), FIRST_SEED, time.monotonic() + seconds
    with nullcontext() if backend is None else _backends.use_backend(backend):
        while seed == FIRST_SEED or time.monotonic() < deadline:
            outcome.record(f"seed {seed}", check_steps, seed, device)
            seed += 1
    return outcome
