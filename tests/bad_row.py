"""A row of the table of bad input: a good call, what spoils it, the error, and what its message says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Row = tuple[Callable[..., object], dict[str, Any], type[Exception], str]


def i32(values: list[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def i64(values: list[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)
