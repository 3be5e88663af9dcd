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
    _backends.get_backend(backend).operator(stem)(*clones)
    return clones


def _bits(t: Tensor) -> Tensor:
    # A copy: one element of any stride counts as contiguous, but cannot be viewed as bytes.
    return t.clone(memory_format=torch.contiguous_format).view(torch.uint8).reshape(*t.shape, -1) if t.numel() else t


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


def assert_within_ulps(stem: str, name: str, got: Tensor, want: Tensor, most: int) -> None:
    """Raise Mismatch unless non-negative float32 values are at most so many units in the last place apart."""
    apart = (got.view(torch.int32).long() - want.view(torch.int32).long()).abs()
    if apart.numel() and int(apart.max()) > most:
        at = tuple(int(i) for i in (apart > most).nonzero()[0])
        raise Mismatch(
            f"{stem}: {name}{list(at)} is {got[at].item()}, {want[at].item()} within {most} ulp was expected"
        )


def confidence_form(stem: str, args: Case, backend: str) -> Case:
    """A case with logits as the reference is to see it: with the confidences that `backend` makes of them.

    A sigmoid may differ by 2 ulp between back ends, which is checked here; from the confidences on, bits are equal.
    """
    names = [a.name for a in getattr(torch.ops.dspark, stem).default._schema.arguments]
    if "is_logits" not in names or not args[names.index("is_logits")]:
        return args
    named = dict(zip(names, args, strict=True))

    def confidences(values: Tensor, slots: Tensor | None, offset_slots: Tensor | None, *freshness: Any) -> Tensor:
        c = torch.empty_like(named["survival"])
        logits = (values, True, named["scale"], named["bias"], named["offset"], slots, offset_slots, *freshness)
        call = (*logits, torch.empty_like(c), c)
        got, want = run("prefix_survival", call, backend)[-1], run("prefix_survival", call, "reference")[-1]
        assert_within_ulps(stem, "confidence", got, want, 2)
        return got

    freshness = [named[k] for k in ("fresh", "generation", "expected")]
    if stem == "prefix_survival":
        slots = (named["slots"], named["offset_slots"])
        c = confidences(named["values"], *slots, named["optimistic"], *freshness)
    else:
        c = confidences(named["values"], named["slots"], named["slots"], False, None, None, None)
        if named["history"] is not None:
            old = confidences(named["history"], named["history_slots"], named["slots"], True, *freshness)
            named |= {"history": old, "history_slots": None}
    # Slots and freshness are in those confidences already.
    gone = ("scale", "bias", "offset", "slots", "offset_slots", "fresh", "generation", "expected")
    named |= {"values": c, "is_logits": False} | {k: None for k in gone if k in named}
    if "optimistic" in named:
        named["optimistic"] = False
    return tuple(named.values())


def compare(stem: str, args: Case, backend: str) -> None:
    """Raise Mismatch unless `backend` writes what the reference writes, in every output."""
    got = run(stem, args, backend)
    want = run(stem, confidence_form(stem, args, backend), "reference")
    for i, name in written(stem):
        if isinstance(args[i], Tensor):
            assert_same(stem, name, got[i], want[i])
