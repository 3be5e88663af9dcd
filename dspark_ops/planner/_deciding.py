"""The half of `Planner` that decides: what this rank wants, what all agree on, what is then executed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import _checks
from ._agreement import FALL_BACK, Agreed, Local, Rule
from ._decision import Decision
from ._execution import Asked, execute
from ._local import LocalPlanner, Own
from ._ranks import Ranks
from ._ring import LagRing

_NO_REQUESTS = torch.empty(0, dtype=torch.int64)


class Deciding:
    """See `Planner`, which makes the parts."""

    generation: Tensor  # int64 [slots]
    setup_fingerprint: int
    _own: LocalPlanner
    _rule: Rule
    _ranks: Ranks
    _ring: LagRing
    _lag: int
    _fill: bool
    _observed: bool = False
    _proposed: Asked | None = None

    @property
    def verify_all(self) -> str | None:
        """Why every draft is always verified: "flat" or "verify_all"; None where plans are made."""
        return self._own.verify_all

    @property
    def late_copies(self) -> int:
        """How many copies of confidences were not over `lag` observations later, and had to be waited for."""
        return self._ring.late

    def admit(self, slots: Tensor | Sequence[int] | int) -> None:
        """These slots now belong to new requests: nothing that was observed in them counts any more."""
        index = torch.as_tensor(slots, dtype=None if isinstance(slots, Tensor) else torch.int64).reshape(-1)
        _checks.tensor("slots", index, _checks.INDEX_DTYPES, ["B"])
        self._generation_of(index)  # refuses what is no slot
        self.generation[index.long()] += 1

    def force(self, budget: float | int | None) -> None:
        """Fix the budget, to profile or to compare: an int counts rows, a float is a share of all; None ends it.

        No tier is filled beyond it, so that the step has the rows that were asked for.
        """
        if isinstance(budget, float):
            _checks.number("budget", budget, 0.0, 1.0)
        elif budget is not None:
            _checks.integer("budget", budget, 0)
        self._own.forced = budget

    def decide(
        self,
        slots: Tensor = _NO_REQUESTS,
        *,
        generation: Tensor | None = None,
        caps: Tensor | None = None,
        context_tokens: int | None = None,
    ) -> Decision:
        """The decision for a step of the requests in `slots`. Host only; nothing is read from a device.

        A bad argument is refused before ranks communicate: a rank of a group then still has to call `fall_back`.

        Args:
            slots: int64 [B] on the host, distinct; none on an idle rank.
            generation: int64 [B], which request is in the slot now; default `self.generation[slots]`.
            caps: int32 [B] on the host, most rows per request (`max_safe_verify_len`); 0 marks an inactive one.
            context_tokens: for a cost model with a context term.
        """
        asked, local = self._look(slots, generation, caps, context_tokens)
        return self._conclude(asked, self._ranks.agree(self._rule, local))

    def propose(
        self,
        slots: Tensor = _NO_REQUESTS,
        *,
        generation: Tensor | None = None,
        caps: Tensor | None = None,
        context_tokens: int | None = None,
        fall_back: bool = False,
    ) -> list[int]:
        """The first half of `decide` or `fall_back`, for a runtime with a collective of its own: int64 values.

        Reduce the ranks' lists elementwise, by maximum (rule "maximum") or by sum ("joint"), then `conclude`.
        """
        look = self._decline(slots) if fall_back else self._look(slots, generation, caps, context_tokens)
        self._proposed, local = look
        return self._rule.vector(local)

    def conclude(self, reduced: list[int]) -> Decision:
        """The decision that follows from the reduced proposals: the same graph on every rank."""
        if self._proposed is None:
            raise ValueError("conclude: nothing has been proposed since the last decision")
        asked, self._proposed = self._proposed, None
        return self._conclude(asked, self._ranks.choose(self._rule, reduced), together=True)

    def fall_back(self, slots: Tensor = _NO_REQUESTS) -> Decision:
        """Take part in a step without a plan (a prefill is in it, say): every rank takes its uniform layout."""
        asked, local = self._decline(slots)
        self._ranks.agree(self._rule, local)
        return self._conclude(asked, FALL_BACK)

    def _generation_of(self, slots: Tensor) -> Tensor:
        try:
            return self.generation.index_select(0, slots)
        except (IndexError, RuntimeError):
            raise ValueError(f"slots: expected values in [0, {len(self.generation)}), got {slots.tolist()}") from None

    def _look(
        self, slots: Tensor, generation: Tensor | None, caps: Tensor | None, context_tokens: int | None
    ) -> tuple[Asked, Local]:
        """What this rank wants by itself, and what it brings to the agreement."""
        _checks.tensor("slots", slots, torch.int64, ["B"])
        requests = slots.shape[0]
        # Copies: the caller may prepare the next step in the same tensors before this one is allocated.
        generation = self._generation_of(slots) if generation is None else generation.clone()
        slots = slots.clone()
        if self._lag == 0 and requests and not self._observed:
            raise ValueError("lag: 0 plans from this step's confidences, so observe() them before decide()")
        self._observed = False
        if requests == 0:
            own = Own("idle", 0, 0, 0, 0)
        else:
            own = self._own.plan(self._ring.read(), slots, generation, caps, context_tokens)
        local = Local(requests, own.least + own.budget, context_tokens or 0, own.tier_tau)
        return Asked(own, slots, generation, context_tokens), local

    def _decline(self, slots: Tensor) -> tuple[Asked, Local]:
        requests = slots.shape[0]
        own = Own("fallback", *self._own.rules.row_range(requests, None), 0)
        asked = Asked(own, slots.clone(), self._generation_of(slots))
        self._observed = False
        return asked, Local(requests, -1)

    def _conclude(self, asked: Asked, agreed: Agreed, together: bool = False) -> Decision:
        own = asked.own
        if agreed.rows < 0 and (own.reason != "idle" or together or self._ranks.steps_together):
            asked = asked._replace(own=Own("fallback", own.least, own.full, own.full, own.full - own.least))
        setup = self.setup_fingerprint if self._ranks.compares else None
        decision = execute(self._own, asked, agreed, self._fill, setup)
        self._ranks.compare(decision.fingerprint)
        return decision
