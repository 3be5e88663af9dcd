"""Cost models: the time of a step with M rows, T = base + row[M] in nanoseconds (DESIGN 3.3 and 5). Host only.

`FloorTable` and `AdditiveTable` read and write SGLang's JSON tables unchanged. Tables are immutable and validated when
they are made, so that a decode step never meets a bad one.
"""

from __future__ import annotations

import math
import operator
import os
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as short
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec
import torch
from torch import Tensor

from . import _checks
from ._files import write_atomic

Device = str | torch.device
Table = TypeVar("Table", bound="CostTable")

MAX_NS = (1 << 31) - 1
_MAX_PROBE = (1 << 31) - 1
# What msgspec raises for text that is not the JSON asked for: the last one, for what is nested too deeply.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@runtime_checkable
class StepCost(Protocol):
    """What a planner asks of a cost model. T(M) = base + row[M], which kernels clamp into [1, 2^31 - 1]."""

    def row(self, max_rows: int, device: Device = "cpu", num_reqs: int = 1) -> Tensor:
        """Token-side cost in ns by rows, int32 [max_rows + 1]; cached and shared, so never write to it."""

    def base(self, num_reqs: int, context_tokens: int | None = None) -> int:
        """The rest of the step in ns: what depends on the requests and their context, not on the rows."""

    @property
    def is_flat(self) -> bool:
        """Whether T is the same for any number of rows. A planner then always verifies everything."""


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _probes(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """Non-empty, strictly increasing integers in [0, 2^31 - 1]."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TypeError(f"{name}: expected a list of integers, got {type(values).__name__}")
    if any(isinstance(x, bool) or not hasattr(x, "__index__") for x in values):
        raise TypeError(f"{name}: expected integers, got {short(list(values))}")
    probes = tuple(map(operator.index, values))
    if not probes:
        raise ValueError(f"{name}: expected at least one probe, got none")
    if probes[0] < 0 or probes[-1] > _MAX_PROBE:
        raise ValueError(f"{name}: expected integers in [0, {_MAX_PROBE}], got {short(list(probes))}")
    for i in range(1, len(probes)):
        if probes[i] <= probes[i - 1]:
            raise ValueError(
                f"{name}: expected strictly increasing integers, got {short(probes[i])} after {short(probes[i - 1])}"
            )
    return probes


def _finite(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # an int past the largest float
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name}: expected a finite number, got {short(value)}")
    return number


def _per_probe(name: str, values: Sequence[float], probes_name: str, probes: tuple[int, ...]) -> tuple[float, ...]:
    """One finite number per probe."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TypeError(f"{name}: expected a list of numbers, got {type(values).__name__}")
    if len(values) != len(probes):
        raise ValueError(f"{name}: expected {len(probes)} numbers, one per {probes_name}, got {len(values)}")
    return tuple(_finite(f"{name}[{i}]", x) for i, x in enumerate(values))


def _segments(probes: Sequence[int], max_rows: int) -> Tensor:
    """Per number of rows, 0 to max_rows, the index of the last probe that is not above it, or 0."""
    index = array("q", [0]) * min(probes[0], max_rows + 1)
    for i, end in enumerate((*probes[1:], max_rows + 1)):
        index.extend(array("q", [i]) * (min(end, max_rows + 1) - len(index)))
    # Not searchsorted: it wakes torch's threads, which on a busy host takes longer than the whole row.
    return torch.frombuffer(index, dtype=torch.int64)


class CostTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A cost model that is a JSON file: its fields are the file's fields."""

    def _set(self, **fields: Any) -> None:
        """Store validated fields of a frozen table, in __post_init__ only."""
        for name, value in fields.items():
            msgspec.structs.force_setattr(self, name, value)

    def _build_row(self, max_rows: int) -> Tensor:
        raise NotImplementedError

    def row(self, max_rows: int, device: Device = "cpu", num_reqs: int = 1) -> Tensor:
        """Token-side cost in ns by rows, int32 [max_rows + 1]; cached per (max_rows, device), so never write to it."""
        cache: dict[tuple[int, torch.device], Tensor] = self.__dict__.setdefault("_rows", {})
        key = (max_rows, torch.device(device))
        if key not in cache:
            _checks.integer("max_rows", max_rows, 0, _checks.MAX_VERIFY_ROWS)
            cache[key] = self._build_row(max_rows).to(key[1])
        return cache[key]

    def to_json(self) -> str:
        """The table as SGLang writes it."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls: type[Table], text: str | bytes) -> Table:
        """The table in `text`; ValueError naming the field for anything that is not exactly such a table."""
        try:
            return msgspec.json.decode(text, type=cls)
        except _UNREADABLE as error:
            raise ValueError(f"not a {cls.__name__}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON file in one step: on failure an older file stays whole."""
        write_atomic(path, self.to_json())


class FloorTable(CostTable, frozen=True, forbid_unknown_fields=True, dict=True):
    """SGLang's one-dimensional table: steps per second at the largest probe that is not above M, the first below it.

    Args:
        sample_batch_tokens: probes, rows of a step, strictly increasing.
        sample_steps_per_sec: steps per second at each probe, positive; a step may take up to 2^31 - 1 ns.
        max_batch_tokens: the rows the table is meant for, at least the last probe. Past it the last probe still holds.
    """

    sample_batch_tokens: Sequence[int]
    sample_steps_per_sec: Sequence[float]
    max_batch_tokens: int

    def __post_init__(self) -> None:
        probes = _probes("sample_batch_tokens", self.sample_batch_tokens)
        speeds = _per_probe("sample_steps_per_sec", self.sample_steps_per_sec, "sample_batch_tokens", probes)
        for i, speed in enumerate(speeds):
            if speed * MAX_NS < 1e9:
                expected = "a positive speed whose step fits int32 nanoseconds (at least 0.4657)"
                raise ValueError(f"sample_steps_per_sec[{i}]: expected {expected}, got {speed}")
        _checks.integer("max_batch_tokens", self.max_batch_tokens, probes[-1], _MAX_PROBE)
        self._set(sample_batch_tokens=probes, sample_steps_per_sec=speeds)

    def _probe_ns(self) -> list[int]:
        return [max(1, round(1e9 / speed)) for speed in self.sample_steps_per_sec]

    def _build_row(self, max_rows: int) -> Tensor:
        return torch.tensor(self._probe_ns(), dtype=torch.int32)[_segments(self.sample_batch_tokens, max_rows)]

    def base(self, num_reqs: int, context_tokens: int | None = None) -> int:
        """0: the table knows only rows."""
        _checks.integer("num_reqs", num_reqs, 0)
        return 0

    @property
    def is_flat(self) -> bool:
        """Whether T is the same for any number of rows, as in an uninitialised table: planning then verifies all."""
        return len(set(self._probe_ns())) == 1


class AdditiveTable(CostTable, frozen=True, forbid_unknown_fields=True, dict=True):
    """SGLang's additive table: T = bias + alpha(requests) + theta(rows), each linear between probes, flat outside.

    ``base = rint(1e9 * (bias + alpha(B)))`` and ``row[M] = rint(1e9 * theta(M))``, so T is within 1 ns of the sum.

    Args:
        bias_seconds: positive.
        bs_probes, alpha_seconds: cost by requests; probes strictly increasing, values of any sign.
        m_probes, theta_seconds: cost by rows; likewise. Every sum T must lie in (0, 2^31 - 1 ns].
    """

    bias_seconds: float
    bs_probes: Sequence[int]
    alpha_seconds: Sequence[float]
    m_probes: Sequence[int]
    theta_seconds: Sequence[float]

    def __post_init__(self) -> None:
        bias = _finite("bias_seconds", self.bias_seconds)
        if bias <= 0:
            raise ValueError(f"bias_seconds: expected a number > 0, got {bias}")
        bs_probes = _probes("bs_probes", self.bs_probes)
        alpha = _per_probe("alpha_seconds", self.alpha_seconds, "bs_probes", bs_probes)
        m_probes = _probes("m_probes", self.m_probes)
        theta = _per_probe("theta_seconds", self.theta_seconds, "m_probes", m_probes)
        for i, seconds in enumerate(theta):
            if not -MAX_NS <= seconds * 1e9 <= MAX_NS:
                raise ValueError(f"theta_seconds[{i}]: expected a time that fits int32 nanoseconds, got {seconds}")
        shortest, longest = bias + min(alpha) + min(theta), bias + max(alpha) + max(theta)
        if shortest <= 0 or longest * 1e9 > MAX_NS:
            raise ValueError(
                "bias_seconds + alpha_seconds + theta_seconds: expected every sum in (0, 2.147483647] seconds, "
                f"got sums from {shortest} to {longest}"
            )
        self._set(bias_seconds=bias, bs_probes=bs_probes, alpha_seconds=alpha, m_probes=m_probes, theta_seconds=theta)

    def _build_row(self, max_rows: int) -> Tensor:
        probes = torch.tensor(self.m_probes)
        theta = torch.tensor(self.theta_seconds, dtype=torch.float64)
        rows = torch.arange(max_rows + 1).clamp(self.m_probes[0], self.m_probes[-1])
        low = _segments(self.m_probes, max_rows)
        high = (low + 1).clamp(max=len(probes) - 1)
        fraction = (rows - probes[low]).double() / (probes[high] - probes[low]).clamp(min=1)
        return ((theta[low] + fraction * (theta[high] - theta[low])) * 1e9).round().int()

    def base(self, num_reqs: int, context_tokens: int | None = None) -> int:
        """bias + alpha(num_reqs) in ns; the table has no context term."""
        _checks.integer("num_reqs", num_reqs, 0)
        probes, alpha = self.bs_probes, self.alpha_seconds
        high = bisect_right(probes, num_reqs)
        if high in (0, len(probes)):
            return _ns(self.bias_seconds + alpha[max(high - 1, 0)])
        low = high - 1
        fraction = (num_reqs - probes[low]) / (probes[high] - probes[low])
        return _ns(self.bias_seconds + alpha[low] + fraction * (alpha[high] - alpha[low]))

    @property
    def is_flat(self) -> bool:
        """Whether T is the same for any number of rows (alpha may still differ by requests)."""
        return len({_ns(theta) for theta in self.theta_seconds}) == 1


_TABLES: tuple[type[CostTable], ...] = (FloorTable, AdditiveTable)


def load_cost_table(path: str | os.PathLike[str]) -> CostTable:
    """The cost table in a JSON file, of whichever kind its fields say.

    Raises ValueError naming the file and the field if it is not exactly such a table, OSError if it cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except _UNREADABLE as error:
        raise ValueError(f"{path}: not a JSON object: {error}") from error
    shared, kind = max(((len(fields.keys() & set(t.__struct_fields__)), t) for t in _TABLES), key=lambda pair: pair[0])
    if not shared:
        known = "; ".join(f"{t.__name__}: {', '.join(t.__struct_fields__)}" for t in _TABLES)
        raise ValueError(f"{path}: expected the fields of one cost table ({known}), got {', '.join(fields) or 'none'}")
    try:
        return kind.from_json(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
