"""Acceptance the slow way, one request at a time, and SGLang's golden cases."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import dspark_ops
import golden_data

GOLDEN = golden_data.load("accept")
MAX = (1 << 31) - 1


def ints(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def slow_commit(raw: int, length: int, drafts: list[int], prefix: int, bonuses: list[int | None]) -> list[Any]:
    """Outputs of one request in the order of `Accepted`; `bonuses` has the bonus after each row."""
    if length == 0:
        return [0, 0, 0, 0, min(max(prefix, 0), MAX), [0] * (len(drafts) + 1)]
    correct = min(raw, length - 1)
    tokens = [*drafts, 0]
    tokens[correct] = bonuses[correct] or 0
    sequence = min(min(max(prefix, 0), MAX) + correct + 1, MAX)
    return [correct, raw - correct, tokens[correct], correct + 1, sequence, tokens]


def slow_target(target: Tensor, cu: Tensor | None, r: int, width: int) -> list[int | None]:
    """The target tokens at rows 0 to N - 1 of a request, None outside the buffer."""
    flat = target.flatten().tolist()
    start = r * width if cu is None else int(cu[r])
    return [flat[i] if 0 <= i < len(flat) else None for i in range(start, start + width)]


def check_outputs(got: tuple[Any, ...], want: list[list[Any]]) -> None:
    for name, values, expected in zip(dspark_ops.Accepted._fields, got, zip(*want, strict=True), strict=False):
        if values is not None:
            assert values.tolist() == list(expected), name
