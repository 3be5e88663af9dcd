"""Identity of tensor-parallel ranks: they must decide alike, or they hang in different graphs.

A fingerprint is a 64-bit hash of everything a decision was made from and of the decision. Ranks compare them with one
reduction; or all ranks take the first one's confidences, so that there is nothing to differ in.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

Part = Tensor | int | str | None
Group = Any  # torch.distributed.ProcessGroup; None is not a group here


class RanksDiffer(RuntimeError):
    """Ranks that must decide alike do not."""


def fingerprint(parts: Iterable[Part]) -> int:
    """A signed 64-bit hash of these values, in order. Tensors must be on the CPU."""
    state = blake2b(digest_size=8)
    for part in parts:
        if isinstance(part, Tensor):
            dense = part.contiguous()
            size = dense.numel() * dense.element_size()
            state.update(b"t%d:" % size)
            state.update(ctypes.string_at(dense.data_ptr(), size) if size else b"")
        else:
            state.update(f"v{part!r};".encode())
    return int.from_bytes(state.digest(), "little", signed=True)


def require_same(what: str, value: int, group: Group) -> None:
    """Raise RanksDiffer on every rank unless all hold the same value: one reduction of two integers.

    The minimum of ~x is the bitwise complement of the maximum of x, without an overflow.
    """
    ends = torch.tensor([value, ~value])
    dist.all_reduce(ends, dist.ReduceOp.MIN, group=group)
    least, most = int(ends[0]), ~int(ends[1])
    if least != most:
        rank = dist.get_rank(group)
        raise RanksDiffer(f"{what}: ranks differ (rank {rank} has {value:#x}; from {least:#x} to {most:#x})")


def require_same_setup(value: int, group: Group) -> None:
    """Raise RanksDiffer, naming the ranks, unless all were set up alike. At start-up, before the first decision."""
    size = dist.get_world_size(group)
    gathered = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(gathered, torch.tensor([value]), group=group)
    values = [int(v) for v in gathered]
    odd = [rank for rank, v in enumerate(values) if v != values[0]]
    if odd:
        raise RanksDiffer(
            f"setup: ranks {odd} have another cost table, rule or option than rank 0 "
            f"(fingerprints {', '.join(f'{v & (1 << 64) - 1:016x}' for v in values)})"
        )


def from_first_rank(values: Tensor, group: Group) -> Tensor:
    """The first rank's values, in place, on every rank of the group."""
    dist.broadcast(values, dist.get_global_rank(group, 0), group=group)
    return values
