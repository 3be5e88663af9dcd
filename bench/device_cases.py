"""Inputs of every operator at a serving size, for `device.py`: arguments of the dispatcher schema, outputs included.

`CASES` maps a line of the report to a function of (B, γ, seed); the same shapes come from every seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import dspark_ops

Args = tuple[Any, ...]
EPS = 1e-6
PAGES = 64


class Draw:
    """Random inputs of one seed."""

    def __init__(self, batch: int, gamma: int, seed: int) -> None:
        self.batch, self.gamma, self.width = batch, gamma, gamma + 1
        self.g = torch.Generator().manual_seed(seed)

    def ints(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.randint(low, high + 1, shape, generator=self.g, dtype=dtype)

    def confidence(self) -> Tensor:
        """Most requests sure, some not."""
        return torch.rand(self.batch, self.gamma, generator=self.g) ** 0.3

    def survival(self) -> Tensor:
        with dspark_ops.use_backend("reference"):
            return dspark_ops.prefix_survival(self.confidence())

    def cost(self) -> Args:
        """A staircase that doubles over the rows, base in a scalar."""
        rows = torch.arange(self.batch * self.width + 1)
        steps = 1_000_000 + (rows + 7) // 8 * 8 * (1_000_000 // (self.batch * self.width))
        return steps.int(), 0, torch.tensor(10_000_000)

    def lens(self) -> Tensor:
        return self.ints(1, self.width, self.batch)

    def cu_seqlens(self, lens: Tensor) -> Tensor:
        return torch.cat([torch.zeros(1, dtype=torch.int32), lens.cumsum(0, dtype=torch.int32)])


def i32(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.int32)


def i64(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.int64)


def prefix_survival(d: Draw) -> Args:
    out = torch.zeros(d.batch, d.gamma)
    return (d.confidence(), False, *(None,) * 5, False, None, None, None, out, None)


def plan_budget(d: Draw) -> Args:
    return (d.survival(), *d.cost(), None, 1, 0, EPS, 0, -1, 0, None, False, i64(5), None)


def schedule_verify_lens(d: Draw) -> Args:
    budget = d.ints(0, d.batch * d.gamma, 1, dtype=torch.int64)[0]
    return (d.survival(), 0, budget, *d.cost(), None, 1, 0, EPS, -1, None, False, i32(d.batch), i64(5))


def _allocate(d: Draw, history: Tensor | None) -> Args:
    outputs = (i32(d.batch), i32(d.batch + 1), torch.zeros(d.batch, d.gamma), i64(5), None)
    rules = (None, 1, 0, EPS, 0, -1, 0, None, False)
    planned = (history, None, None, None, None, -1, None)
    return (d.confidence(), False, *(None,) * 4, *planned, *d.cost(), *rules, *outputs)


def allocate_verify_lens(d: Draw) -> Args:
    return _allocate(d, None)


def allocate_with_history(d: Draw) -> Args:
    return _allocate(d, d.confidence())


def ragged_layout(d: Draw) -> Args:
    rows, batch = d.batch * d.width, d.batch
    tokens = d.ints(0, 150_000, batch, dtype=torch.int64), d.ints(0, 150_000, batch, d.gamma, dtype=torch.int64)
    outputs = i32(batch + 1), i32(rows), i32(rows), i64(rows), i64(rows), i32(batch), i32(batch + 1)
    return (d.lens(), d.ints(1, 4096, batch, dtype=torch.int64), *tokens, *outputs)


def pad_to_bucket(d: Draw) -> Args:
    slots = d.batch + d.batch // 4
    return d.lens(), d.batch * d.width, -1, i32(slots), i32(slots)


def compressor_layout(d: Draw) -> Args:
    lens = d.lens()
    rows = d.batch * d.width
    args: list[Any] = [d.cu_seqlens(lens), lens, d.ints(0, 4096, d.batch), rows, True]
    outputs: list[Any] = [i32(d.batch) for _ in range(3)]
    for ratio in (4, 128):
        capacity = min(rows, rows // ratio + d.batch)
        args += [ratio, d.ints(0, 9999, d.batch, PAGES), 64, -1]
        outputs += [i32(d.batch + 1), i64(capacity), i32(capacity), i32(capacity)]
    return (*args, *outputs)


def state_rows(d: Draw) -> Args:
    lens, slots = d.lens(), torch.arange(d.batch)
    start = d.ints(200, 1000, d.batch)
    maps = d.ints(0, 99_999, d.batch, 1024), d.ints(0, 99_999, 100_000, dtype=torch.int64)
    return (d.cu_seqlens(lens), lens, start, slots, *maps, 4, 2, 16, 64, 0, i32(d.batch, 8 + d.width))


def state_blocks(d: Draw) -> Args:
    table = d.ints(1, 9999, d.batch, PAGES)
    return table, d.lens(), d.ints(0, 4096, d.batch), 4, 2, 64, torch.zeros_like(table)


def max_safe_verify_len(d: Draw) -> Args:
    return d.ints(0, 4096, d.batch), 128, 1, 256, d.width, i32(d.batch)


def _scatter(d: Draw, columns: int) -> Args:
    cu, rows = d.cu_seqlens(d.lens()), d.batch * d.width
    compact = torch.zeros(rows, columns, dtype=torch.bfloat16)
    compact[:, 0] = torch.arange(rows)
    return compact, cu, d.width, 0, torch.zeros(rows, columns, dtype=torch.bfloat16)


def scatter_tokens(d: Draw) -> Args:
    rows = d.batch * d.width
    return d.ints(0, 9, rows, dtype=torch.int64), d.cu_seqlens(d.lens()), d.width, 0, i64(rows)


def scatter_hidden(d: Draw) -> Args:
    return _scatter(d, 4096)


def gather_hidden(d: Draw) -> Args:
    compact, cu, _, fill, strided = _scatter(d, 4096)
    return compact, cu, fill, strided


def _learning(d: Draw) -> Args:
    return d.confidence(), torch.arange(d.batch), 0.99, 0.1, 4.0, torch.zeros(d.batch)


def _accepted(d: Draw) -> Args:
    return i32(d.batch), i32(d.batch), i64(d.batch), i32(d.batch), i64(d.batch), i64(d.batch, d.width)


def accept_greedy(d: Draw) -> Args:
    target = d.ints(0, 1, d.batch, d.width, dtype=torch.int64)
    shared = target[:, : d.gamma].clone(), target, d.lens(), d.ints(0, 4096, d.batch, dtype=torch.int64), None
    return (*shared, *_learning(d), *_accepted(d))


def finalize_accept(d: Draw) -> Args:
    drafts = d.ints(0, 9999, d.batch, d.gamma, dtype=torch.int64)
    raw, prefix = d.ints(0, d.gamma, d.batch), d.ints(0, 4096, d.batch, dtype=torch.int64)
    bonus = d.ints(0, 9999, d.batch, dtype=torch.int64)
    return (raw, drafts, d.lens(), prefix, bonus, None, None, None, None, 1.0, 0.1, 4.0, None, *_accepted(d))


def update_offset(d: Draw) -> Args:
    confidence, *rest = _learning(d)
    return (confidence, d.ints(0, d.gamma, d.batch), d.lens(), *rest)


_STEMS = {
    "allocate_with_history": "allocate_verify_lens", "scatter_tokens": "scatter_to_strided",
    "scatter_hidden": "scatter_to_strided", "gather_hidden": "gather_from_strided",
}  # fmt: skip
CASES: dict[str, Callable[[Draw], Args]] = {
    f.__name__: f
    for f in (
        prefix_survival, plan_budget, schedule_verify_lens, allocate_verify_lens, allocate_with_history, ragged_layout,
        pad_to_bucket, compressor_layout, state_rows, state_blocks, max_safe_verify_len, scatter_tokens,
        scatter_hidden, gather_hidden, accept_greedy, finalize_accept, update_offset,
    )
}  # fmt: skip


def stem_of(name: str) -> str:
    """The operator that a line of the report times."""
    return _STEMS.get(name, name)


def make(name: str, batch: int, gamma: int, seed: int) -> Args:
    """The arguments of one call, on the CPU."""
    return CASES[name](Draw(batch, gamma, seed))


def to_device(args: Args, device: str) -> Args:
    """The arguments, with every tensor a copy of its own on the device."""
    return tuple(a.to(device, copy=True) if isinstance(a, Tensor) else a for a in args)


def bytes_of(args: Args) -> int:
    """Bytes of all tensors, inputs and outputs."""
    return sum(a.numel() * a.element_size() for a in args if isinstance(a, Tensor))
