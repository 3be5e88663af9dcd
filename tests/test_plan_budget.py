"""The budget: golden decisions, the paper's example, exactness, brute force by definition."""

from __future__ import annotations

from random import Random

import pytest
import torch

import dspark_ops
from conftest import cases_for
from dspark_ops.cost import AdditiveTable, FloorTable
from dspark_ops.testing import case
from golden_data import load
from oracle import Oracle, Rules

ONE = 1 << 43


def test_golden(backend: str) -> None:
    for golden in load("plan_budget"):
        survival = torch.tensor(golden["survival"])
        table = (AdditiveTable if "bias_seconds" in golden["table"] else FloorTable)(**golden["table"])
        with dspark_ops.use_backend(backend):
            stats = dspark_ops.plan_budget(survival, table, search="global").tolist()
        assert stats[0] == golden["budget"], golden["kind"]
        assert stats[3] / ONE == pytest.approx(golden["predicted_tau"], rel=1e-9)  # theirs is a float64 sum
        assert stats[4] / 1e9 == pytest.approx(golden["predicted_step_seconds"], abs=1.1e-9)  # rounded to ns, twice


@pytest.mark.parametrize(("c2", "search", "drafts"), [(0.9, "first_drop", 0), (0.9, "global", 2), (0.0, "global", 0)])
def test_paper_appendix_a(c2: float, search: str, drafts: int, backend: str) -> None:
    """SPS(1, 2, 3) = 1, 0.5, 0.45 and confidences 0.8, c2."""
    step_ns = torch.tensor([1000, 1000, 2000, 2222], dtype=torch.int32)
    with dspark_ops.use_backend(backend):
        survival = dspark_ops.prefix_survival(torch.tensor([[0.8, c2]]))
        stats = dspark_ops.plan_budget(survival, step_ns, search=search).tolist()
    assert stats[0] == drafts
    if drafts:
        assert stats[3] / ONE / (stats[4] / 1000) == pytest.approx(1.134, abs=5e-4)


def test_equals_definition(backend: str) -> None:
    """Against fractions: both searches, caps, floors, eps, max_rows, min_gain, tiers and tier_tau."""
    for seed in range(cases_for(backend, 250)):
        args = case("plan_budget", seed)
        survival, step_ns, base, base_tensor, caps, low, high, eps, search, max_rows, ppm, tiers, fill, stats, tau = (
            args
        )
        rng = Random(seed)
        if survival.shape[0] > 12:
            continue
        confidence = torch.tensor(
            [[rng.choice([0.25, 0.5, 1.0, rng.random()]) for _ in row] for row in survival.tolist()]
        )
        confidence = confidence.reshape(survival.shape)
        with dspark_ops.use_backend(backend):
            survival = dspark_ops.prefix_survival(confidence)
            dspark_ops.plan_budget(
                survival, step_ns, base if base_tensor is None else base_tensor,
                search="first_drop" if search else "global", caps=caps, min_verify_len=low,
                max_verify_len=high or None, survival_eps=eps, max_rows=None if max_rows < 0 else max_rows,
                min_gain_ppm=ppm, tiers=tiers, fill_tier=fill, out=stats, out_tier_tau=tau,
            )  # fmt: skip
        o = Oracle(
            survival.tolist(),
            Rules(None if caps is None else caps.tolist(), low, high or None, eps, None if max_rows < 0 else max_rows),
        )
        base = base if base_tensor is None else int(base_tensor)
        budget = o.best_budget(step_ns.tolist(), base, bool(search), ppm)
        tier = next((t for t in (tiers.tolist() if tiers is not None else []) if t >= o.min_rows + budget), -1)
        filled = budget
        if fill and tier >= 0:
            filled = max(budget, min(tier - o.min_rows, o.most()))
        admitted = min(filled, len(o.order))
        assert stats.tolist()[:4] == [budget, o.min_rows + admitted, tier, o.tau(admitted)], seed
        if tau is not None:
            rows = [max(0, min(t - o.min_rows, o.most(), len(o.order))) for t in tiers.tolist()]
            assert tau.tolist() == [[o.tau(b) for b in rows], [int(t < o.min_rows) for t in tiers.tolist()]], seed


@pytest.mark.parametrize(("s", "budget"), [(2.0**-13, 0), (2.0**-13 + 2.0**-36, 1), (2.0**-13 - 2.0**-37, 0)])
@pytest.mark.parametrize("search", ["global", "first_drop"])
def test_exact_where_doubles_are_not(search: str, s: float, budget: int, backend: str) -> None:
    """tau(0) = 2^60, T(0) = 2^30, T(1) = T(0) + 1 and q_1 = 2^30 tie exactly; then one float32 step of s either way.

    The two ratios differ by a factor of 1 + 2^-53 at the most, so a comparison in doubles is a guess.
    """
    batch = 1 << 16
    survival = torch.zeros(batch, 2)
    survival[:, 0] = 1.0  # mandatory with min_verify_len = 2
    survival[0, 1] = s
    step_ns = torch.full((3 * batch + 1,), 1 << 30, dtype=torch.int32)
    step_ns[2 * batch + 1 :] += 1
    with dspark_ops.use_backend(backend):
        stats = dspark_ops.plan_budget(survival, step_ns, search=search, min_verify_len=2)
    assert stats[0] == budget


@pytest.mark.parametrize("batch", [3, 64, 5000])
def test_neighbouring_floats_are_told_apart(batch: int, backend: str) -> None:
    """Survivals one unit in the last place apart, in random order, with room for only some of them."""
    order = torch.randperm(batch, generator=torch.Generator().manual_seed(1)).int()
    survival = (torch.tensor(0.75).view(torch.int32) + order).view(torch.float32)[:, None]
    step_ns = torch.full((2 * batch + 1,), 1000, dtype=torch.int32)  # flat: every candidate that fits is worth it
    best_first = (survival.flatten().double() * ONE).long().sort(descending=True).values
    with dspark_ops.use_backend(backend):
        for budget in (1, batch // 3, batch // 2, batch):
            stats = dspark_ops.plan_budget(survival, step_ns, search="global", max_rows=batch + budget)
            assert stats[3] == batch * ONE + best_first[:budget].sum()


def test_smallest_budget_among_equal_ratios(backend: str) -> None:
    """b = 1, 2 and 3 are equally good, and better than b = 0 and the rest."""
    step_ns = torch.tensor([0, 0, 0, 0, 4000, 4000, 4800, 5600, 9000], dtype=torch.int32)
    with dspark_ops.use_backend(backend):
        stats = dspark_ops.plan_budget(torch.ones(4, 1), step_ns, search="global")
    assert stats[0] == 1


def test_min_gain_keeps_the_full_budget(backend: str) -> None:
    """b = 0 beats verifying all by 10 %: kept below that threshold, dropped at it (the comparison is strict)."""
    survival, step_ns = torch.tensor([[0.5]]), torch.tensor([0, 1000, 1650], dtype=torch.int32)
    with dspark_ops.use_backend(backend):
        budgets = [
            int(dspark_ops.plan_budget(survival, step_ns, search="global", min_gain_ppm=ppm)[0])
            for ppm in (0, 99_999, 100_000, 1_000_000)
        ]
    assert budgets == [0, 0, 1, 1]


def test_nan_confidence_is_zero(backend: str) -> None:
    """Fault 11: a NaN neither poisons tau nor drops the other rows."""
    step_ns = torch.arange(17, dtype=torch.int32) + 1000
    with dspark_ops.use_backend(backend):
        plan = dspark_ops.allocate_verify_lens(
            torch.tensor([[0.9, float("nan"), 0.9], [0.9, 0.9, 0.9]]), step_ns, search="global"
        )
    assert plan.verify_lens.tolist() == [2, 4]
    assert plan.stats[3] == Oracle(plan.survival.tolist(), Rules()).tau(4)
