"""Benchmark of the planning operators against SGLang's budget planner (on the host) and top-k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from case import ROTATE, Case, Rival, all_equal, close, equal, random

import dspark_ops
from dspark_ops.cost import AdditiveTable, FloorTable


def confidences(batch: int, gamma: int, seed: int) -> list[torch.Tensor]:
    """Different but alike inputs: most requests sure, some not."""
    g = random(seed)
    return [torch.rand(batch, gamma, generator=g) ** 0.3 for _ in range(ROTATE)]


def tables(batch: int, width: int) -> dict[str, AdditiveTable | FloorTable]:
    """A cost that doubles over the rows, as both of the rival's table forms: linear, and in steps of 8 rows.

    Whole nanoseconds a row, so that the rival's float seconds and our int nanoseconds have the same best budget.
    """
    rows = batch * width
    slope = round(0.012 / rows, 9)
    probes = list(range(1, rows + 1, 8))
    return {
        "additive": AdditiveTable(0.01, [1, batch + 1], [0.0, 0.002], [1, rows], [slope, slope * rows]),
        "floor": FloorTable(probes, [1 / (0.012 + slope * m) for m in probes], rows),
    }


class Theirs:
    """The rival's planner for one table."""

    def __init__(self, s: Any, table: AdditiveTable | FloorTable, batch: int, gamma: int) -> None:
        kind = s.SpsAdditiveCostTable if isinstance(table, AdditiveTable) else s.SpsCostTable
        self.s, self.table, self.cfg = s, kind.from_json(table.to_json()), s.DSparkScheduleConfig(gamma=gamma)
        self.batch, self.width = batch, gamma + 1

    def budget(self, survival: torch.Tensor) -> int:
        """The best budget."""
        return self.s.compute_verify_token_budget(
            history_survival_probs=survival, sps_table=self.table, cfg=self.cfg
        ).budget

    def filled(self, budget: int, tiers: list[int]) -> int:
        """The budget that fills the smallest tier which holds this one."""
        sizes = {"bs": self.batch, "verify_num_draft_tokens": self.width, "min_verify_len": 1}
        rows = self.s.local_verify_tier_num_tokens(verify_token_budget=budget, **sizes)
        return self.s.graph_tier_fill_budget(graph_num_tokens=self.s.round_up_grid(rows, tiers), **sizes)

    def lens(self, confidence: torch.Tensor, budget: int) -> torch.Tensor:
        """The lengths of a budget."""
        return self.s.schedule_verify_lens_topk(confidence=confidence, budget=budget, cfg=self.cfg)

    def lens_of(self, survival: torch.Tensor, budget: int) -> torch.Tensor:
        """The same from survival."""
        return self.s.schedule_verify_lens_topk_from_survival(survival_probs=survival, budget=budget, cfg=self.cfg)


def allocate(batch: int, gamma: int, s: Rival, *, form: str, history: bool = False, fill: bool = False) -> Case:
    """Budget and lengths: the rival's budget planner on the host, then its top-k."""
    now, old = confidences(batch, gamma, 1), confidences(batch, gamma, 2)
    rows, table = batch * (gamma + 1), tables(batch, gamma + 1)[form]
    step_ns, base_ns = table.row(rows), table.base(batch)
    grid = sorted({max(batch, rows * k // 16) for k in range(1, 17)})
    tiers = torch.tensor(grid, dtype=torch.int32) if fill else None
    out = dspark_ops.allocate_verify_lens(now[0], step_ns, base_ns, search="global", tiers=tiers, fill_tier=fill)
    name = f"allocate_verify_lens{'+history' if history else ''}{'+fill' if fill else ''} ({form})"
    tier = int(out.stats[2]) if fill else None

    def ours(i: int) -> dspark_ops.Plan:
        if history:
            return dspark_ops.allocate_verify_lens(
                now[i % ROTATE], step_ns, base_ns, history=old[i % ROTATE], tiers=tiers, fill_tier=fill, out=out
            )
        return dspark_ops.allocate_verify_lens(
            now[i % ROTATE], step_ns, base_ns, search="global", tiers=tiers, fill_tier=fill, out=out
        )

    if s is None:
        return Case(name, batch, gamma, ours, tier=tier)
    theirs = Theirs(s, table, batch, gamma)

    def rival(i: int) -> torch.Tensor:
        budget = theirs.budget(s.compute_sort_survival((old if history else now)[i % ROTATE]))
        return theirs.lens(now[i % ROTATE], theirs.filled(budget, grid) if fill else budget)

    def check() -> None:
        # On the same survival bits: the rival's own product accumulates in double, which moves near ties.
        for i in range(ROTATE):
            plan = ours(i)
            budget = theirs.budget(dspark_ops.prefix_survival(old[i]) if history else plan.survival)
            lens = theirs.lens_of(plan.survival, theirs.filled(budget, grid) if fill else budget)
            equal(plan.verify_lens, lens, name)

    return Case(name, batch, gamma, ours, {"SGLang": rival}, check, tier)


def parts(batch: int, gamma: int, s: Rival) -> Iterator[Case]:
    """The three operators that an allocation is made of."""
    now = confidences(batch, gamma, 3)
    survival = [dspark_ops.prefix_survival(c) for c in now]
    table = tables(batch, gamma + 1)["floor"]
    step_ns = table.row(batch * (gamma + 1))
    budget = batch * gamma // 3
    out, stats = torch.empty_like(now[0]), torch.empty(5, dtype=torch.int64)
    schedule = dspark_ops.schedule_verify_lens(survival[0], budget)
    theirs = None if s is None else Theirs(s, table, batch, gamma)

    def ours_survival(i: int) -> Any:
        return dspark_ops.prefix_survival(now[i % ROTATE], out=out)

    def ours_budget(i: int) -> Any:
        return dspark_ops.plan_budget(survival[i % ROTATE], step_ns, search="global", out=stats)

    def ours_schedule(i: int) -> Any:
        return dspark_ops.schedule_verify_lens(survival[i % ROTATE], budget, out=schedule)

    if theirs is None or s is None:
        for name, call in (("prefix_survival", ours_survival), ("plan_budget", ours_budget)):
            yield Case(name, batch, gamma, call)
        yield Case("schedule_verify_lens", batch, gamma, ours_schedule)
        return

    def their_budget(i: int) -> Any:
        return (torch.tensor(theirs.budget(survival[i % ROTATE])),)

    def their_schedule(i: int) -> Any:
        return (theirs.lens_of(survival[i % ROTATE], budget),)

    def their_survival(i: int) -> torch.Tensor:
        return s.compute_sort_survival(now[i % ROTATE])

    def check_survival() -> None:
        # It accumulates in double: ours rounds γ - 1 products by half a unit each, it rounds once; γ units hold both.
        for i in range(ROTATE):
            close(ours_survival(i), their_survival(i), gamma * 2.0**-23, "prefix_survival")

    yield Case("prefix_survival", batch, gamma, ours_survival, {"SGLang": their_survival}, check_survival)
    yield Case(
        "plan_budget", batch, gamma, ours_budget, {"SGLang": their_budget},
        lambda: all_equal(ours_budget, their_budget, lambda r: (r[0],), "plan_budget"),
    )  # fmt: skip
    yield Case(
        "schedule_verify_lens", batch, gamma, ours_schedule, {"SGLang": their_schedule},
        lambda: all_equal(ours_schedule, their_schedule, lambda r: (r[0],), "schedule_verify_lens"),
    )  # fmt: skip


def cases(batch: int, gamma: int, s: Rival) -> Iterator[Case]:
    """Every planning case at one size."""
    for history in (False, True):
        for form in ("additive", "floor"):
            yield allocate(batch, gamma, s, form=form, history=history)
    yield allocate(batch, gamma, s, form="floor", history=True, fill=True)
    yield from parts(batch, gamma, s)
