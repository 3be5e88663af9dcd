"""What one rank would do by itself: from lagged confidences to a budget, or the reason for not looking at them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import torch
from torch import Tensor

from .. import _backends, _checks
from ..ops import _planning
from ..ops.plan_budget import plan_budget
from ..ops.prefix_survival import prefix_survival
from ..tiers import tier_row
from ._costs import PlanningCost, Span
from ._decision import Reason
from ._graphs import Graphs
from ._ring import Entry

Q43 = 1 << 43


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How a plan may look, and when it is worth making; checked once, when it is made."""

    gamma: int
    search: str
    min_verify_len: int
    max_verify_len: int | None
    survival_eps: float
    max_rows: int | None
    min_gain_ppm: int
    overhead_ns: int
    bypass: bool

    def __post_init__(self) -> None:
        _checks.integer("gamma", self.gamma, 1, _checks.MAX_VERIFY_ROWS - 1)
        width = self.gamma + 1
        if self.max_verify_len is not None:
            _checks.integer("max_verify_len", self.max_verify_len, 1, width)
        _checks.integer("min_verify_len", self.min_verify_len, 0, self.longest)
        _checks.number("survival_eps", self.survival_eps, 2.0**-20, 1.0)
        if self.max_rows is not None:
            _checks.integer("max_rows", self.max_rows, 0)
        _planning.check_search(_planning.resolve_search(self.search), self.min_gain_ppm)
        _checks.integer("overhead_ns", self.overhead_ns, 0, 1 << 31)

    @property
    def longest(self) -> int:
        """The most rows of one request."""
        return self.max_verify_len or self.gamma + 1

    @property
    def shortest(self) -> int:
        """The mandatory rows of one request."""
        return max(self.min_verify_len, 1)

    def row_range(self, requests: int, caps: Tensor | None) -> tuple[int, int, int]:
        """M0, the rows with nothing trimmed, and the most of them that a plan may take."""
        if caps is None:
            least, full = requests * self.shortest, requests * self.longest
        else:
            limits = [min(max(cap, 0), self.longest) for cap in caps.tolist()]
            least, full = sum(min(self.shortest, limit) for limit in limits), sum(limits)
        return least, full, full if self.max_rows is None else max(least, min(full, self.max_rows))


class Own(NamedTuple):
    """One rank's own wish."""

    reason: Reason
    least: int  # M0
    full: int  # with nothing trimmed
    limit: int  # what max_rows leaves of it
    budget: int
    tau: int = 0  # Q43; 0 where no confidences were looked at
    ns: int = 0
    tier_tau: list[list[int]] | None = None  # [2, P]


class LocalPlanner:
    """Plans one rank's budget on the host. Its workspaces hold the last plan's details until the next."""

    def __init__(self, rules: Rules, cost: PlanningCost | None, graphs: Graphs | None, joint: bool) -> None:
        self.rules, self.cost, self.graphs, self.joint = rules, cost, graphs, joint
        self.verify_all: Reason | None = None
        if cost is None:
            self.verify_all = "verify_all"
        elif cost.model.is_flat:
            self.verify_all = "flat"
        self._flat_row: Tensor | None = None
        self.forced: float | int | None = None
        self.stats = torch.zeros(_planning.STATS, dtype=torch.int64)
        self._tiers = tier_row(graphs.rows) if graphs else None
        self._tier_tau = torch.zeros(2, len(graphs.rows), dtype=torch.int64) if graphs else None
        self._survival: dict[int, Tensor] = {}

    def survival(self, requests: int) -> Tensor:
        """The workspace of so many requests, float32 [B, γ]."""
        kept = self._survival.get(requests)
        if kept is None:
            kept = self._survival[requests] = torch.empty(requests, self.rules.gamma)
        return kept

    def plan(
        self, history: Entry, slots: Tensor, generation: Tensor, caps: Tensor | None, context_tokens: int | None
    ) -> Own:
        """This rank's budget for the requests in `slots`."""
        rules, requests = self.rules, slots.shape[0]
        least, full, limit = rules.row_range(requests, caps)
        if self.forced is not None:
            wanted = int(self.forced * (full - least)) if isinstance(self.forced, float) else self.forced
            return self._fixed(Own("forced", least, full, limit, min(wanted, limit - least)), requests)
        if self.cost is None or (self.verify_all is not None and self._still_flat(self.cost, requests)):
            return self._fixed(Own(self.verify_all or "verify_all", least, full, limit, limit - least), requests)

        span = self.cost.span(requests, least, limit, context_tokens)
        ppm = span.needed_ppm(rules.min_gain_ppm, rules.overhead_ns)
        if rules.bypass and not self.joint and not span.can_pay(ppm):
            return Own("bypass", least, full, limit, limit - least, ns=span.full_ns)
        if rules.search == "first_drop":
            ppm = 0  # it compares each budget with the one before it, not with the full one
        if _backends.forced_namespace is None:
            self._search(history, slots, generation, caps, span, ppm)
        else:
            with _backends.on_host():  # whatever is forced for the device's tensors, these are the host's
                self._search(history, slots, generation, caps, span, ppm)
        budget, _, _, tau, ns = self.stats.tolist()
        tier_tau = None if self._tier_tau is None else self._tier_tau.tolist()
        return Own("planned", least, full, limit, budget, tau, ns, tier_tau)

    def _search(
        self, history: Entry, slots: Tensor, generation: Tensor, caps: Tensor | None, span: Span, ppm: int
    ) -> None:
        """The two operators, into the workspaces."""
        rules, survival = self.rules, self.survival(slots.shape[0])
        prefix_survival(
            history.confidence, slots=slots, generation=history.generation, expected=generation, out=survival
        )
        plan_budget(
            survival, span.row, span.base, search=rules.search, caps=caps, min_verify_len=rules.min_verify_len,
            max_verify_len=rules.max_verify_len, survival_eps=rules.survival_eps, max_rows=rules.max_rows,
            min_gain_ppm=min(ppm, 1_000_000), tiers=self._tiers, out=self.stats, out_tier_tau=self._tier_tau,
        )  # fmt: skip

    def _still_flat(self, cost: PlanningCost, requests: int) -> bool:
        """Whether a flat table is so still: one that learns has another row by then."""
        row = cost.row(requests)
        if row is not self._flat_row:
            self._flat_row = row
            self.verify_all = "flat" if cost.model.is_flat else None
        return self.verify_all is not None

    def _fixed(self, own: Own, requests: int) -> Own:
        """For the joint rule, what a budget that is not up for choice brings: only tiers that hold it, all alike."""
        if not self.joint or self.graphs is None:
            return own
        rows = self.graphs.rows
        return own._replace(
            tier_tau=[[requests * Q43] * len(rows), [int(tier < own.least + own.budget) for tier in rows]]
        )
