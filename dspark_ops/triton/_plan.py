"""What a planning operator asks for, in the kernels' terms; `run` picks the path by size."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from torch import Tensor

from ._launch import contiguous

FIRST_DROP = 1  # the operators' number of that search
KEY_BASE = 0x357FFFFF
UNBOUNDED = 1 << 30  # above every row count: larger ints are bounded to it, so that every int but a base is an int32


def least_key(survival_eps: float) -> int:
    """Key of eps rounded to float32: a survival is a candidate's iff its key is not less."""
    return struct.unpack("<i", struct.pack("<f", survival_eps))[0] - KEY_BASE


@dataclass(slots=True, kw_only=True)
class Plan:
    """Either `survival_in` is given, or `values` (with history or not) and `survival` to write into."""

    batch: int
    gamma: int
    caps: Tensor | None
    min_verify_len: int
    max_verify_len: int
    survival_eps: float
    max_rows: int
    stats: Tensor
    step_ns: Tensor | None
    base_ns: int
    base_scalar: Tensor | None
    tiers: Tensor | None
    fill_tier: bool
    survival_in: Tensor | None = None
    values: Tensor | None = None
    is_logits: bool = False
    scale: Tensor | None = None
    bias: Tensor | None = None
    offset: Tensor | None = None
    slots: Tensor | None = None
    history: Tensor | None = None
    history_slots: Tensor | None = None
    fresh: Tensor | None = None
    generation: Tensor | None = None
    expected: Tensor | None = None
    given: bool = False
    budget: int = 0
    budget_scalar: Tensor | None = None
    search: int = 0
    min_gain_ppm: int = 0
    survival: Tensor | None = None
    calibrated: Tensor | None = None
    verify_lens: Tensor | None = None
    cu_seqlens: Tensor | None = None
    tier_tau: Tensor | None = None

    def __post_init__(self) -> None:
        if self.given:  # a given budget replaces the search, history and all
            self.history = self.history_slots = self.fresh = self.generation = self.expected = None
        for name in _INPUTS:
            setattr(self, name, contiguous(getattr(self, name)))
        self.max_verify_len = self.max_verify_len or self.gamma + 1
        self.max_rows = min(self.max_rows, UNBOUNDED)
        self.budget = min(self.budget, UNBOUNDED)

    @property
    def least(self) -> int:
        return least_key(self.survival_eps)


_INPUTS = (
    "survival_in", "values", "scale", "bias", "offset", "slots", "history", "history_slots", "fresh", "generation",
    "expected", "budget_scalar", "step_ns", "base_scalar", "caps", "tiers",
)  # fmt: skip


def rows(t: Tensor | None) -> int:
    return 0 if t is None else t.shape[0]


def run(plan: Plan) -> None:
    """One launch if the batch fits one program, else several."""
    from . import _many_programs, _one_program

    if _one_program.fits(plan):
        _one_program.launch(plan)
    else:
        _many_programs.launch(plan)
