"""Where verify lengths come from in a replay: fixed, by a threshold, planned over time, or knowing the outcome."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypedDict

import torch
from torch import Tensor

from ..calibration.tables import Calibration, Operands
from ..cost import StepCost
from ..ops.plan_budget import plan_budget
from ..ops.prefix_survival import prefix_survival
from ..ops.schedule_verify_lens import schedule_verify_lens
from ..planner import Decision, Planner
from .timeline import Moment

Q43 = 2.0**43


class _Operands(TypedDict):
    scale: Tensor | None
    bias: Tensor | None
    offset: Tensor | None


class Lengths(NamedTuple):
    """What one step verifies, and what that was expected to commit (None: nobody asked)."""

    verify_lens: Tensor  # int32 [B]
    predicted_tau: float | None = None


class Budget(Protocol):
    """A source of verify lengths. Called once per step, in order."""

    def lengths(self, moment: Moment, logits: Tensor, correct_len: Tensor) -> Lengths:
        """Lengths for logits [B, γ]; only the oracle may look at correct_len, int32 [B], before they are set."""


def _uniform(logits: Tensor, length: int) -> Tensor:
    return torch.full((len(logits),), length, dtype=torch.int32)


class Fixed:
    """Every request verifies `drafts` drafts."""

    def __init__(self, drafts: int) -> None:
        self.drafts = drafts

    def lengths(self, moment: Moment, logits: Tensor, correct_len: Tensor) -> Lengths:
        """drafts + 1 rows each."""
        return Lengths(_uniform(logits, self.drafts + 1))


class Threshold:
    """A request verifies its drafts up to the first whose survival is below `least`: no cost model, no batch."""

    def __init__(self, least: float) -> None:
        self.least = least

    def lengths(self, moment: Moment, logits: Tensor, correct_len: Tensor) -> Lengths:
        """1 + the number of drafts with enough survival; survival never rises."""
        survival = prefix_survival(logits=logits)
        kept = survival >= self.least
        return Lengths(1 + kept.sum(1, dtype=torch.int32), len(logits) + float((survival * kept).double().sum()))


class Oracle:
    """The best budget of each step for one who knows the outcome: survival is 1 up to it and 0 past it.

    It maximises tokens / T step by step, as a planner does with what it expects: no planner is ahead of it in a step.
    Tokens per second of a whole replay are a ratio of sums, which this bounds in practice, not by proof.
    """

    def __init__(self, cost: StepCost) -> None:
        self.cost = cost

    def lengths(self, moment: Moment, logits: Tensor, correct_len: Tensor) -> Lengths:
        """Only drafts that will be accepted are worth a row."""
        survival = (torch.arange(logits.shape[1]) < correct_len[:, None]).float()
        budget = plan_budget(survival, self.cost, search="global")[0]
        schedule = schedule_verify_lens(survival, budget)
        return Lengths(schedule.verify_lens, int(schedule.stats[3]) / Q43)


class Planned:
    """`Planner` over time: lagged confidences, slots that change hands, perhaps offsets that learn.

    Args:
        cost: what the planner believes a step costs.
        slots, gamma, graphs, lag, search: see `Planner`. lag 0 looks at this step's confidences.
        calibration: how logits become confidences, and whether offsets learn; None takes them as they are.
    """

    def __init__(
        self,
        cost: StepCost,
        slots: int,
        gamma: int,
        graphs: Iterable[tuple[int, int]] | None = None,
        lag: int = 1,
        search: str = "global",
        calibration: Calibration | None = None,
    ) -> None:
        self.planner = Planner(cost, gamma=gamma, slots=slots, graphs=graphs, lag=lag, search=search)
        self._learning = calibration and calibration.offset_rule
        self._fixed: Operands = calibration.operands() if calibration else {}
        self._lag = lag
        self._offset = torch.zeros(slots)

    def admit(self, moment: Moment) -> None:
        """Forget what the slots' requests before these were like."""
        if len(moment.new):
            self.planner.admit(moment.new)
            self._offset[moment.new] = 0.0

    def lengths(self, moment: Moment, logits: Tensor, correct_len: Tensor) -> Lengths:
        """Decide, allocate, and learn from the outcome, in this order."""
        self.admit(moment)
        if self._lag == 0:
            survival = torch.empty(logits.shape)
            confidence = torch.empty(logits.shape)
            prefix_survival(logits=logits, **self._operands(moment), out=survival, out_confidence=confidence)
            self.planner.observe(moment.slots, confidence)
        return self.take(self.planner.decide(moment.slots), moment, logits, correct_len)

    def take(self, decision: Decision, moment: Moment, logits: Tensor, correct_len: Tensor) -> Lengths:
        """What a decision verifies."""
        plan = self.planner.allocate(decision, logits=logits, **self._operands(moment))
        if plan is None:
            return Lengths(_uniform(logits, logits.shape[1] + 1))
        if self._learning:
            assert plan.confidence is not None
            correct = torch.minimum(correct_len, plan.verify_lens - 1)
            self._learning.update(self._offset, plan.confidence, correct, plan.verify_lens, moment.slots)
        return Lengths(plan.verify_lens, int(plan.stats[3]) / Q43)

    def _operands(self, moment: Moment) -> _Operands:
        offset = self._offset[moment.slots] if self._learning else None
        return {"scale": self._fixed.get("scale"), "bias": self._fixed.get("bias"), "offset": offset}
