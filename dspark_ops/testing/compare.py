"""Runs one case on two back ends and compares every written output bit for bit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _backends

Case = tuple[Any, ...]


class Mismatch(AssertionError):
    """A back end and the reference disagree; the text names operator, output, first coordinate and both values."""


def written(stem: str) -> list[tuple[int, str]]:
    """Positions and names of the arguments that the operator writes."""
    arguments = getattr(torch.ops.dspark, stem).default._schema.arguments
    return [(i, a.name) for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write]


def run(stem: str, args: Case, backend: str) -> Case:
    """Run the operator on clones of `args`; returns the clones, outputs written."""
    clones = tuple(a.clone() if isinstance(a, Tensor) else a for a in args)
    namespace = _backends.get_backend(backend).namespace
    getattr(getattr(torch.ops, namespace), stem).default(*clones)
    return clones


def _bits(t: Tensor) -> Tensor:
    return t.contiguous().view(torch.uint8).reshape(*t.shape, -1) if t.numel() else t


def assert_same(stem: str, name: str, got: Tensor, want: Tensor) -> None:
    """Raise Mismatch unless both tensors hold the same bits (NaN and signed zeros included)."""
    if torch.equal(_bits(got), _bits(want)):
        return
    differs = (_bits(got) != _bits(want)).any(-1)
    at = tuple(int(i) for i in differs.nonzero()[0])
    raise Mismatch(
        f"{stem}: {name}{list(at)} is {got[at].item()}, the reference says {want[at].item()} "
        f"({int(differs.sum())} of {differs.numel()} elements differ)"
    )


def compare(stem: str, args: Case, backend: str) -> None:
    """Raise Mismatch unless `backend` writes what the reference writes, in every output."""
    got, want = run(stem, args, backend), run(stem, args, "reference")
    for i, name in written(stem):
        if isinstance(args[i], Tensor):
            assert_same(stem, name, got[i], want[i])
