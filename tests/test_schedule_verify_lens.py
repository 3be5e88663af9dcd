"""The rows of a given budget: golden lengths, the tie rule, floors and caps."""

from __future__ import annotations

from random import Random

import pytest
import torch

import dspark_ops
from conftest import cases_for
from dspark_ops.testing.planning import KINDS, confidences
from golden_data import load
from oracle import Oracle, Rules


def test_golden(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        for case in load("schedule_verify_lens"):
            lens, stats = dspark_ops.schedule_verify_lens(torch.tensor(case["survival"]), case["budget"])
            assert lens.tolist() == case["verify_lens"], case["kind"]
            assert stats[1] == sum(case["verify_lens"])


@pytest.mark.parametrize("kind", KINDS)
def test_equals_definition_at_every_budget(kind: str, backend: str) -> None:
    rng = Random(kind)
    for _ in range(cases_for(backend, 6)):
        batch, gamma = rng.randint(1, 8), rng.randint(1, 6)
        caps = [rng.randint(0, gamma + 1) for _ in range(batch)] if rng.random() < 0.5 else None
        high = rng.choice([None, rng.randint(1, gamma + 1)])
        low = rng.randint(0, high or gamma + 1)
        with dspark_ops.use_backend(backend):
            survival = dspark_ops.prefix_survival(confidences(rng, batch, gamma, kind))
            o = Oracle(survival.tolist(), Rules(caps, low, high))
            for budget in range(batch * gamma + 2):
                lens, stats = dspark_ops.schedule_verify_lens(
                    survival, budget, min_verify_len=low, max_verify_len=high,
                    caps=None if caps is None else torch.tensor(caps, dtype=torch.int32),
                )  # fmt: skip
                assert lens.tolist() == o.lens(budget)
                assert stats[3] == o.tau(min(budget, o.most()))


def test_ties_go_by_position_then_request(backend: str) -> None:
    survival = torch.full((3, 3), 0.5)
    with dspark_ops.use_backend(backend):
        lens = [dspark_ops.schedule_verify_lens(survival, b).verify_lens.tolist() for b in range(10)]
    assert lens == [
        [1, 1, 1], [2, 1, 1], [2, 2, 1], [2, 2, 2], [3, 2, 2], [3, 3, 2], [3, 3, 3], [4, 3, 3], [4, 4, 3], [4, 4, 4],
    ]  # fmt: skip


def test_budget_zero_is_a_plan(backend: str) -> None:
    """Fault 5."""
    with dspark_ops.use_backend(backend):
        lens, stats = dspark_ops.schedule_verify_lens(torch.full((4, 3), 0.9), 0)
    assert lens.tolist() == [1, 1, 1, 1] and stats.tolist() == [0, 4, -1, 4 << 43, 0]


def test_inactive_rows_are_written(backend: str) -> None:
    """Fault 7: a padded request has length 0 in memory that held garbage, and moves nothing else."""
    confidence = torch.full((4, 3), 0.9)
    out = dspark_ops.allocate_verify_lens(confidence, budget=3)
    for t in out[:4]:
        t.fill_(-7)
    with dspark_ops.use_backend(backend):
        caps = torch.tensor([4, 0, 4, -1], dtype=torch.int32)
        plan = dspark_ops.allocate_verify_lens(confidence, budget=3, caps=caps, out=out)
    assert plan.verify_lens.tolist() == [3, 0, 2, 0]
    assert plan.cu_seqlens.tolist() == [0, 3, 3, 5, 5]
    assert plan.stats.tolist()[:2] == [3, 5]


def test_no_slot_is_wasted_at_the_cap(backend: str) -> None:
    """Fault 12: gamma = max = 3 and budget 4 over two rows use all four extra rows."""
    with dspark_ops.use_backend(backend):
        lens, _ = dspark_ops.schedule_verify_lens(torch.tensor([[0.9, 0.8, 0.7], [0.3, 0.2, 0.1]]), 4, max_verify_len=3)
    assert lens.tolist() == [3, 3]


@pytest.mark.parametrize(("low", "lens"), [(3, [5, 3]), (1, [3, 1]), (0, [3, 1])])
def test_mandatory_rows_are_not_candidates(low: int, lens: list[int], backend: str) -> None:
    """Fault 13: budget 2 adds two rows above the floor, whatever the floor is."""
    survival = torch.tensor([[0.9, 0.8, 0.7, 0.6], [0.3, 0.2, 0.1, 0.05]])
    with dspark_ops.use_backend(backend):
        assert dspark_ops.schedule_verify_lens(survival, 2, min_verify_len=low).verify_lens.tolist() == lens


def test_rows_below_eps_are_never_verified(backend: str) -> None:
    survival = torch.tensor([[0.5, 2.0**-20, 2.0**-21]])
    with dspark_ops.use_backend(backend):
        for eps, length in ((2.0**-20, 3), (1e-6, 2), (0.5, 2), (0.75, 1)):
            lens, _ = dspark_ops.schedule_verify_lens(survival, 3, survival_eps=eps)
            assert lens.tolist() == [length], eps


def test_tier_fill_never_forces_a_row_below_eps(backend: str) -> None:
    survival = torch.tensor([[0.5, 0.0], [0.25, 0.125]])
    tiers = torch.tensor([3, 8], dtype=torch.int32)
    with dspark_ops.use_backend(backend):
        plain = dspark_ops.schedule_verify_lens(survival, 2, tiers=tiers)
        filled = dspark_ops.schedule_verify_lens(survival, 2, tiers=tiers, fill_tier=True)
        eager = dspark_ops.schedule_verify_lens(survival, 2, tiers=tiers[:1], fill_tier=True)
    assert plain.verify_lens.tolist() == [2, 2] and plain.stats.tolist()[:3] == [2, 4, 8]
    assert filled.verify_lens.tolist() == [2, 3] and filled.stats.tolist()[:3] == [2, 5, 8]
    assert eager.verify_lens.tolist() == [2, 2] and eager.stats.tolist()[:3] == [2, 4, -1]


def test_device_scalar_budget_is_bounded(backend: str) -> None:
    survival = torch.full((2, 2), 0.9)
    with dspark_ops.use_backend(backend):
        for value, budget in ((-5, 0), (3, 3), (1 << 62, 4)):
            lens, stats = dspark_ops.schedule_verify_lens(survival, torch.tensor(value))
            assert stats[0] == budget and int(lens.sum()) == 2 + budget
