"""`Planner`: the host side of confidence-scheduled verification over time (DESIGN 6)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor

from .. import _checks
from ..cost import StepCost
from ..ops import _planning
from ..ops.allocate_verify_lens import Plan, allocate_verify_lens
from ..tiers import tier_row
from ._agreement import JointRule, MaximumRule, Rule
from ._costs import PlanningCost
from ._deciding import Deciding
from ._decision import Decision
from ._graphs import Graphs
from ._identity import Group, fingerprint
from ._local import LocalPlanner, Rules
from ._ranks import Ranks
from ._ring import LagRing
from ._statistics import Statistics

_RULES, _IDENTITIES = ("maximum", "joint"), ("check", "broadcast")


class Planner(Deciding):
    """Decides on the host, before each step's launch, how many rows it verifies and which captured graph it replays.

    The three calls of a step::

        planner = Planner(cost, gamma=7, slots=256, graphs=[(64, 64), (128, 64), (256, 64)], device="cuda")
        planner.admit(new_slots)                          # slots that now belong to a new request
        decision = planner.decide(slots)                  # host only: budget and graph, from lagged confidences
        plan = planner.allocate(decision, confidence)     # one launch; None: verify everything (nothing was launched)
        ...                                               # verify in decision.graph, accept
        planner.record(decision, rows=rows, tokens=tokens, step_ns=ns)   # optional: statistics

    `decide` prices the confidences that were observed `lag` observations ago: each slot's product of confidences up to
    a draft token is the chance that the token is accepted, and the budget maximises ``expected tokens / T(rows)``
    (`plan_budget`). A request that was not there then counts as certain. Budgets from the past are lossless under
    sampled acceptance; `allocate` lets the current confidences only rank.

    Nothing is planned, and `allocate` launches nothing, where the table says that trimming cannot pay: at low load
    (`bypass`), with a flat table (a warning says so), or with ``cost=None``, which asks for it.

    Data parallel: with `dp_group` the ranks take each step together, so each must call `decide` (with no slots when
    idle) or `fall_back` once per step: one reduction of a few integers. Rule "maximum": the largest local plan decides.
    Rule "joint": the graph with the most expected tokens per second of all ranks together; it has no bypass, since
    what does not pay for one rank may pay for all. Ranks whose tables differ by then are told apart: `RanksDiffer`.

    Tensor parallel: with `tp_group`, ``identity="check"`` compares a fingerprint of inputs, table and plan in each
    `decide` (one reduction of two integers) and raises `RanksDiffer` on every rank; a drift of the confidences is so
    found `lag` steps after it happened. ``identity="broadcast"`` sends the first rank's confidences to all before
    they are used, which leaves nothing to differ in. Slots, generations and, for a table that learns, observed times
    must come from one source. Either way, and for `dp_group`, different set-ups are refused in the constructor.

    Args:
        cost: the step's cost; None verifies everything.
        gamma: γ, draft tokens per request. Confidences and calibrations for another γ are refused.
        slots: size of the request pool; slots are 0..slots-1.
        graphs: captured graphs as (rows, slots); None runs everything eager.
        lag: >= 1: how many observations old the confidences that set the budget are. 0: this step's own, which the
            caller passes to `observe` before `decide`; then `search` must be named, see `allocate_verify_lens`.
        device: where confidences come from. Elsewhere than on the CPU they are copied asynchronously to pinned memory.
        search, min_verify_len, max_verify_len, survival_eps, max_rows, min_gain_ppm: see `plan_budget`.
        overhead_ns: what planning and the compact layout add to a step; trimming must gain more than that.
        bypass: False plans at any load.
        fill_tier: raise the budget to the rows that are paid for anyway. Always so with the joint rule.
        rule: "maximum" or "joint" (needs graphs; also without a group, where it picks the best graph for one rank).
        dp_group, tp_group: torch.distributed groups whose collectives take CPU tensors (for a broadcast: `device`'s).
        identity: "check" or "broadcast", with tp_group.
        keep: how many `StepRecord`s the statistics keep.

    Attributes:
        statistics: see `Statistics`; `generation`: int64 [slots], the request count of each slot; `verify_all`: why
        everything is always verified ("flat", "verify_all"), else None; `late_copies`: how often a copy had to be
        waited for.

    Raises:
        TypeError, ValueError: a bad argument, named. RanksDiffer: ranks of a group were set up differently.

    Source: DSpark (arXiv 2607.05147): budget from earlier confidences, current ones rank; the joint rule is ours.
    """

    def __init__(
        self,
        cost: StepCost | None,
        *,
        gamma: int,
        slots: int,
        graphs: Iterable[tuple[int, int]] | None = None,
        lag: int = 1,
        device: str | torch.device = "cpu",
        search: str | None = None,
        min_verify_len: int = 1,
        max_verify_len: int | None = None,
        survival_eps: float = 1e-6,
        max_rows: int | None = None,
        min_gain_ppm: int = 0,
        overhead_ns: int = 0,
        bypass: bool = True,
        fill_tier: bool = True,
        rule: Literal["maximum", "joint"] = "maximum",
        dp_group: Group = None,
        tp_group: Group = None,
        identity: Literal["check", "broadcast"] = "check",
        keep: int = 1024,
    ) -> None:
        _checks.integer("slots", slots, 1, _checks.MAX_VERIFY_ROWS)
        _check_options(cost, gamma, lag, search, rule, identity, graphs is not None)
        rules = Rules(
            gamma=gamma, search=search or "global", min_verify_len=min_verify_len, max_verify_len=max_verify_len,
            survival_eps=survival_eps, max_rows=max_rows, min_gain_ppm=min_gain_ppm, overhead_ns=overhead_ns,
            bypass=bypass,
        )  # fmt: skip
        _checks.verify_width(slots, gamma)
        self._graphs = None if graphs is None else Graphs(graphs, gamma + 1)
        priced = None if cost is None else PlanningCost(cost, gamma + 1)
        self._own = LocalPlanner(rules, priced, self._graphs, rule == "joint")
        self._rules = rules
        self._fill = fill_tier or rule == "joint"
        self._rule: Rule = MaximumRule(self._graphs)
        if rule == "joint" and self._graphs is not None:
            self._rule = JointRule(self._graphs, priced, min_gain_ppm, overhead_ns)
        self._lag = lag
        self._device = torch.empty(0, device=device).device  # with its index
        self._ring = LagRing(max(lag, 1), slots, gamma, self._device)
        self._tier_rows: dict[int, Tensor] = {}
        self.generation = torch.ones(slots, dtype=torch.int64)
        self.statistics = Statistics(keep)
        options = (str(rules), lag, str(self._graphs and self._graphs.tiers), rule, fill_tier, identity)
        self.setup_fingerprint = fingerprint([*options, None if cost is None else cost.fingerprint])
        self._ranks = Ranks(dp_group, tp_group, identity, self.setup_fingerprint)
        if self.verify_all == "flat":
            warnings.warn(
                "cost: the table is flat (a step takes as long for any number of rows; is it uninitialised?), so every "
                "draft is verified and nothing is planned. Profile the machine, or ask for it with cost=None.",
                stacklevel=2,
            )

    def allocate(
        self,
        decision: Decision,
        confidence: Tensor | None = None,
        *,
        logits: Tensor | None = None,
        scale: Tensor | None = None,
        bias: Tensor | None = None,
        offset: Tensor | None = None,
        caps: Tensor | None = None,
        out: Plan | None = None,
    ) -> Plan | None:
        """Verify lengths of this step's requests from their current confidences: one launch, nothing awaited.

        Also observes the (calibrated) confidences for a later `decide`. None where the decision needs no confidences
        (bypass, flat table, fall-back, ...): then every request verifies all its rows and nothing runs on the device.
        Only where `max_rows` leaves some of these out is that a launch too; a fall-back knows no `max_rows`.

        To capture the launch in a graph call `allocate_verify_lens` yourself, with ``budget`` an int64 scalar on the
        device that ``fill_(decision.budget)`` sets before each replay, and give the result to `observe`.

        Args:
            confidence or logits: [B, γ] in the order of the decision's slots; see `prefix_survival`, as for scale,
                bias and offset [B]. In broadcast mode they are overwritten with the first rank's.
            caps: as given to `decide`, on the device.
            out: a `Plan` to write into.
        """
        if not decision.launches:
            return None
        values, _ = _planning.resolve_input(confidence, logits, None)
        _checks.tensor("logits" if confidence is None else "confidence", values, _checks.FLOAT_DTYPES,
                       [len(decision.slots), self._rules.gamma], self._device)  # fmt: skip
        self._ranks.share(values)
        rules = self._rules
        plan = allocate_verify_lens(
            confidence, logits=logits, scale=scale, bias=bias, offset=offset, caps=caps, budget=decision.budget,
            min_verify_len=rules.min_verify_len, max_verify_len=rules.max_verify_len, max_rows=rules.max_rows,
            survival_eps=rules.survival_eps, tiers=self._tiers_of(decision), out=out,
        )  # fmt: skip
        if self._lag:
            seen = confidence if plan.confidence is None else plan.confidence
            assert seen is not None
            self._ring.write(decision.slots, seen, decision.generation)
        return plan

    def observe(self, slots: Tensor, confidence: Tensor, generation: Tensor | None = None) -> None:
        """Keep calibrated confidences [B, γ] for a later `decide`. `allocate` does so itself, unless lag is 0."""
        _checks.tensor("slots", slots, torch.int64, ["B"])
        shape = [len(slots), self._rules.gamma]
        _checks.tensor("confidence", confidence, _checks.FLOAT_DTYPES, shape, self._device)
        self._ranks.share(confidence)
        self._ring.write(slots, confidence, self._generation_of(slots) if generation is None else generation)
        self._observed = True

    def record(self, decision: Decision, *, rows: int, tokens: int | None = None, step_ns: int | None = None) -> None:
        """Report a finished step: rows verified here, tokens committed, and how long it took; see `statistics`."""
        self.statistics.record(decision, rows, tokens, step_ns)

    def _tiers_of(self, decision: Decision) -> Tensor | None:
        if decision.graph is None:
            return None
        kept = self._tier_rows.get(decision.graph.rows)
        if kept is None:
            kept = self._tier_rows[decision.graph.rows] = tier_row([decision.graph.rows], self._device)
        return kept


def _check_options(
    cost: StepCost | None, gamma: int, lag: int, search: str | None, rule: str, identity: str, has_graphs: bool
) -> None:
    """What concerns more than one option, or none of the parts that check their own."""
    for name, value, known in (("rule", rule, _RULES), ("identity", identity, _IDENTITIES)):
        if value not in known:
            raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
    if rule == "joint" and not has_graphs:
        raise ValueError("rule: 'joint' chooses among graphs; give graphs=")
    if rule == "joint" and lag == 0 and search == "first_drop":
        raise ValueError(
            "rule: 'joint' searches globally, which on this step's own confidences (lag 0) is lossless with greedy "
            "acceptance only; name search='global' if that is meant, or let lag be at least 1"
        )
    _checks.integer("lag", lag, 0, 1 << 10)
    if lag == 0 and search is None:
        raise ValueError(
            "search: must be named with lag 0, where this step's own confidences set the budget: 'global' is lossless "
            "with greedy acceptance only, 'first_drop' always; best of all, let lag be at least 1"
        )
    measured_for = getattr(cost, "gamma", None)
    if measured_for not in (None, gamma):
        raise ValueError(f"cost: measured for γ = {measured_for}, expected γ = {gamma}")
