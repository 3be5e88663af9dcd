"""From what a rank wanted and what all agreed on to the step as it will be executed."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ._agreement import Agreed
from ._decision import Decision
from ._identity import fingerprint
from ._local import Q43, LocalPlanner, Own


class Asked(NamedTuple):
    """What a rank wanted and for which requests, between its proposal and its decision."""

    own: Own
    slots: Tensor
    generation: Tensor
    context_tokens: int | None = None


def execute(planner: LocalPlanner, asked: Asked, agreed: Agreed, fill: bool, setup: int | None) -> Decision:
    """This rank's part of the agreed step; `setup` is hashed into its fingerprint, None makes none."""
    own, graph = asked.own, agreed.graph
    budget, tau, ns = own.budget, own.tau, own.ns
    fill = fill and own.reason != "forced"  # a forced budget is meant as it is: to measure a step of so many rows
    if fill and agreed.rows >= 0:
        budget = max(0, min(graph.rows if graph else agreed.rows, own.limit) - own.least)
    if graph is not None and planner.graphs is not None:
        tiers = planner.graphs.tiers[graph.slots]
        if agreed.ns:
            ns = agreed.ns
        elif planner.cost is not None:
            ns = planner.cost.at_tiers(graph.slots, tiers, asked.context_tokens)[tiers.index(graph.rows)]
        if fill and own.reason == "planned" and own.tier_tau is not None:
            tau = own.tier_tau[0][planner.graphs.rows.index(graph.rows)]
    mark = 0
    if setup is not None:
        survival = planner.survival(asked.slots.shape[0]) if own.reason == "planned" else None
        mark = fingerprint(
            [setup, asked.slots, asked.generation, survival, own.budget, tau, ns, budget, str(agreed)]
        )  # fmt: skip
    return Decision(
        reason=own.reason, budget=budget, trims=own.least + budget < own.full, rows=agreed.rows, graph=graph,
        slots=asked.slots, generation=asked.generation, full_rows=own.full, local_budget=own.budget,
        predicted_tau=tau / Q43, predicted_ns=ns, fingerprint=mark,
    )  # fmt: skip
