"""Calibrations as files and as operands: c = sigmoid(scale_k · z + bias_k + offset_r) (DESIGN 3.1).

`StsCalibration` is SGLang's JSON, read and written unchanged; `AffineCalibration` adds what a temperature cannot do (a
bias, so that a head that is too sure of itself can be moved, not only flattened) and how a request's offset learns.
Both say which event they were fitted to and serve nothing else.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import msgspec
import torch
from torch import Tensor

from .. import _checks
from .._files import write_atomic
from ..ops.update_offset import update_offset
from .samples import GREEDY, check_acceptance

C = TypeVar("C", bound="Calibration")

_LARGEST = 1e6
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _numbers(name: str, values: Sequence[float], low: float, above: bool = False) -> tuple[float, ...]:
    """Finite numbers of at most 10^6 in size, >= low (> low if `above`)."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TypeError(f"{name}: expected a list of numbers, got {type(values).__name__}")
    out = []
    for i, x in enumerate(values):
        if isinstance(x, bool) or not isinstance(x, int | float):
            raise TypeError(f"{name}[{i}]: expected a number, got {type(x).__name__}")
        number = float(x) if abs(x) <= _LARGEST else math.inf  # an int may be past the largest float
        if not (math.isfinite(number) and abs(number) <= _LARGEST and (number > low if above else number >= low)):
            raise ValueError(f"{name}[{i}]: expected a number {'>' if above else '>='} {low:g}, at most 1e6, got {x}")
        out.append(number)
    return tuple(out)


class Operands(TypedDict, total=False):
    """What a calibration hands to `allocate_verify_lens` and `prefix_survival`."""

    scale: Tensor
    bias: Tensor


class OffsetRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a request's offset learns from its outcomes: the parameters of `update_offset`."""

    eta: float
    decay: float = 1.0
    limit: float = 4.0

    def __post_init__(self) -> None:
        _checks.number("eta", self.eta, 0.0, _LARGEST)
        _checks.number("decay", self.decay, 0.0, 1.0)
        _checks.number("limit", self.limit, 0.0, _LARGEST)

    def update(
        self, offset: Tensor, confidence: Tensor, correct_len: Tensor, verify_lens: Tensor, slots: Tensor | None = None
    ) -> Tensor:
        """`update_offset` with these parameters, in place."""
        return update_offset(
            offset, confidence, correct_len, verify_lens,
            slots=slots, decay=self.decay, eta=self.eta, limit=self.limit,
        )  # fmt: skip


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, dict=True, kw_only=True):
    """What both kinds share. Immutable and validated when made; the fields are the JSON file's fields."""

    acceptance: str  # the event it was fitted to

    def scale_bias(self) -> tuple[tuple[float, ...], tuple[float, ...] | None]:
        """scale [γ] and bias [γ]; None for no bias."""
        raise NotImplementedError

    @property
    def gamma(self) -> int:
        """γ it was fitted for."""
        return len(self.scale_bias()[0])

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        scale, bias = self.scale_bias()
        return self.offset_rule is None and set(scale) == {1.0} and (bias is None or set(bias) == {0.0})

    @property
    def offset_rule(self) -> OffsetRule | None:
        """How requests' offsets learn; None if they have none."""
        return None

    def operands(self, device: str | torch.device = "cpu") -> Operands:
        """The keyword arguments `scale` and (if there is one) `bias` of `allocate_verify_lens` and `prefix_survival`.

        float32 [γ], cached per device: do not write into them.
        """
        cache: dict[torch.device, Operands] = self.__dict__.setdefault("_operands", {})
        key = torch.device(device)
        if key not in cache:
            scale, bias = self.scale_bias()
            cache[key] = Operands(scale=torch.tensor(scale, dtype=torch.float32, device=key))
            if bias is not None:
                cache[key]["bias"] = torch.tensor(bias, dtype=torch.float32, device=key)
        return cache[key]

    def check_serves(self, gamma: int, acceptance: str) -> None:
        """Raise ValueError unless it was fitted for this γ and this acceptance."""
        if self.gamma != gamma:
            raise ValueError(
                f"calibration: expected one fitted for γ = {gamma}, got one for γ = {self.gamma}; refit it"
            )
        if self.acceptance != check_acceptance(acceptance):
            raise ValueError(
                f"calibration: expected one fitted to {acceptance} acceptance, got one fitted to {self.acceptance}: "
                "they are different events; refit it"
            )

    def to_json(self) -> str:
        """The file's text."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls: type[C], text: str | bytes) -> C:
        """The calibration in `text`; ValueError naming the field for anything that is not exactly one."""
        try:
            return msgspec.json.decode(text, type=cls)
        except _UNREADABLE as error:
            raise ValueError(f"not a {cls.__name__}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON file in one step: on failure an older file stays whole."""
        write_atomic(path, self.to_json())

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            msgspec.structs.force_setattr(self, name, value)

    def _check_shared(self, gamma: int, samples: int, before: Sequence[float], after: Sequence[float]) -> None:
        check_acceptance(self.acceptance)
        _checks.integer("num_samples", samples, 0)
        for name, values in (("ece_before", before), ("ece_after", after)):
            if len(values) not in (0, gamma):
                raise ValueError(f"{name}: expected {gamma} numbers or none, got {len(values)}")
            self._set(**{name: _numbers(name, values, 0.0)})


class StsCalibration(Calibration, frozen=True, forbid_unknown_fields=True, omit_defaults=True, dict=True, kw_only=True):
    """Sequential temperature scaling: c_k = sigmoid(z_k / T_k). SGLang's file.

    Args:
        temperatures: T [γ], positive.
        dataset, num_samples: where it comes from.
        ece_before, ece_after: ECE of the cumulative product per position, or empty.
        acceptance: the event. SGLang's collector only knows greedy prefixes, hence the default, which is not written
            to the file: that is SGLang's, byte for byte. "sampled" is written, and SGLang ignores it.
    """

    temperatures: Sequence[float]
    dataset: str = ""
    num_samples: int = 0
    ece_before: Sequence[float] = ()
    ece_after: Sequence[float] = ()
    acceptance: str = GREEDY

    def __post_init__(self) -> None:
        temperatures = _numbers("temperatures", self.temperatures, 0.0, above=True)
        if not temperatures:
            raise ValueError("temperatures: expected at least one, got none")
        if min(temperatures) < 1 / _LARGEST:
            raise ValueError(f"temperatures: expected numbers >= 1e-06, got {min(temperatures)}")
        self._set(temperatures=temperatures)
        self._check_shared(len(temperatures), self.num_samples, self.ece_before, self.ece_after)

    def scale_bias(self) -> tuple[tuple[float, ...], None]:
        """1 / T, and no bias."""
        return tuple(1 / t for t in self.temperatures), None


class AffineCalibration(
    Calibration, frozen=True, forbid_unknown_fields=True, omit_defaults=True, dict=True, kw_only=True
):
    """c_k = sigmoid(scale_k · z_k + bias_k), and optionally an offset per request that learns (DESIGN 3.10).

    Args:
        acceptance: the event it was fitted to; always in the file.
        scale: [γ], >= 0: a calibration does not turn a head's ranking round.
        bias: [γ].
        offset: the rule that requests' offsets follow, or None.
        dataset, num_samples, ece_before, ece_after: as in `StsCalibration`.
    """

    scale: Sequence[float]
    bias: Sequence[float]
    offset: OffsetRule | None = None
    dataset: str = ""
    num_samples: int = 0
    ece_before: Sequence[float] = ()
    ece_after: Sequence[float] = ()

    def __post_init__(self) -> None:
        scale, bias = _numbers("scale", self.scale, 0.0), _numbers("bias", self.bias, -_LARGEST)
        if not scale or len(scale) != len(bias):
            raise ValueError(f"bias: expected as many numbers as scale, at least one, got {len(bias)} and {len(scale)}")
        self._set(scale=scale, bias=bias)
        self._check_shared(len(scale), self.num_samples, self.ece_before, self.ece_after)

    def scale_bias(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Both as they are."""
        return tuple(self.scale), tuple(self.bias)

    @property
    def offset_rule(self) -> OffsetRule | None:
        """`offset`."""
        return self.offset


def identity(gamma: int, acceptance: str) -> StsCalibration:
    """The calibration that changes nothing: every temperature 1."""
    return StsCalibration(temperatures=(1.0,) * gamma, acceptance=acceptance)


def load_calibration(
    path: str | os.PathLike[str], gamma: int | None = None, acceptance: str | None = None
) -> Calibration:
    """The calibration in a JSON file, of whichever kind its fields say.

    Args:
        path: the file.
        gamma, acceptance: what it must serve; see `Calibration.check_serves`. A server gives both.

    Raises ValueError naming the file and the field if it is not exactly such a file or was fitted for something else,
    OSError if it cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        kinds: dict[str, type[Calibration]] = {"temperatures": StsCalibration, "scale": AffineCalibration}
        kind = next((kinds[key] for key in kinds if key in fields), None)
        if kind is None:
            raise ValueError(f"expected the field temperatures or scale, got {', '.join(fields) or 'none'}")
        calibration = kind.from_json(data)
        if gamma is not None or acceptance is not None:
            calibration.check_serves(
                calibration.gamma if gamma is None else gamma,
                calibration.acceptance if acceptance is None else acceptance,
            )
    except (*_UNREADABLE, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return calibration
