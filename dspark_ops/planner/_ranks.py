"""The collectives of a `Planner`: at start-up one comparison per group, in a step one small reduction or broadcast."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from ._agreement import Agreed, Local, Rule
from ._identity import Group, RanksDiffer, from_first_rank, require_same, require_same_setup


class Ranks:
    """The data-parallel and the tensor-parallel group of one rank, either of which may be None."""

    def __init__(self, dp_group: Group, tp_group: Group, identity: str, setup: int) -> None:
        refusals = []
        for group in (dp_group, tp_group):
            try:
                if group is not None:
                    require_same_setup(setup, group)
            except RanksDiffer as refusal:  # not raised yet: the ranks of the other group wait for this one there
                refusals.append(refusal)
        if refusals:
            raise refusals[0]
        self.steps_together = dp_group is not None
        self.compares = tp_group is not None and identity == "check"
        self._shares = tp_group is not None and identity == "broadcast"
        self._dp_group, self._tp_group = dp_group, tp_group

    def agree(self, rule: Rule, local: Local) -> Agreed:
        """The step that the data-parallel ranks take together."""
        if self._dp_group is None:
            return rule.alone(local)
        reduced = torch.tensor(rule.vector(local))
        operation = dist.ReduceOp.MAX if rule.reduction == "max" else dist.ReduceOp.SUM
        dist.all_reduce(reduced, operation, group=self._dp_group)
        return self.choose(rule, reduced.tolist())

    def choose(self, rule: Rule, reduced: list[int]) -> Agreed:
        """The rule's answer. Where it raises, the tensor-parallel ranks are told, who may have no reason to."""
        try:
            return rule.choose(reduced)
        except RanksDiffer:
            self.compare(0)
            raise

    def compare(self, mark: int) -> None:
        """Raise RanksDiffer on every tensor-parallel rank unless their fingerprints are the same."""
        if self.compares:
            require_same("decision", mark, self._tp_group)

    def share(self, values: Tensor) -> None:
        """In broadcast mode, overwrite with the first tensor-parallel rank's values."""
        if self._shares:
            from_first_rank(values, self._tp_group)
