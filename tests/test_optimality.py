"""Brute force over all allocations of small batches, and properties of plans of any size."""

from __future__ import annotations

import itertools
from fractions import Fraction
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dspark_ops
from dspark_ops.testing.planning import confidences, cost_row
from oracle import Oracle, Rules, q43

ONE = 1 << 43


def allocations(o: Oracle, eps: float) -> list[tuple[tuple[int, ...], int]]:
    """Every vector of lengths that the rules allow, with its tau: no order, no greed, no budget."""
    choices = []
    for s, low, high in zip(o.s, o.floor, o.cap, strict=True):
        fits = [n for n in range(low, high + 1) if n <= low or s[n - 2] >= torch.tensor(eps).item()]
        choices.append([(n, (ONE if high else 0) + sum(q43(x) for x in s[: max(n - 1, 0)])) for n in fits])
    return [(tuple(n for n, _ in pick), sum(t for _, t in pick)) for pick in itertools.product(*choices)]


@pytest.mark.parametrize("seed", range(60))
def test_no_allocation_is_better(seed: int, backend: str) -> None:
    rng = Random(seed)
    batch, gamma = rng.choice([(1, 5), (2, 4), (3, 3), (4, 2), (5, 1)])
    width = gamma + 1
    high = rng.choice([None, rng.randint(1, width)])
    low, eps = rng.randint(0, high or width), rng.choice([1e-6, 0.2, 0.5])
    caps = [rng.randint(0, width) for _ in range(batch)] if rng.random() < 0.5 else None
    max_rows = rng.choice([None, rng.randint(0, batch * width)])
    step_ns = cost_row(rng, batch * width)
    rules: dict[str, Any] = {
        "caps": None if caps is None else torch.tensor(caps, dtype=torch.int32), "min_verify_len": low,
        "max_verify_len": high, "survival_eps": eps, "max_rows": max_rows,
    }  # fmt: skip
    with dspark_ops.use_backend(backend):
        confidence = confidences(rng, batch, gamma)
        plans = {
            search: dspark_ops.allocate_verify_lens(confidence, step_ns, search=search, **rules)
            for search in ("global", "first_drop")
        }
    o = Oracle(plans["global"].survival.tolist(), Rules(caps, low, high, eps, max_rows))
    every = [(n, tau) for n, tau in allocations(o, eps) if max_rows is None or sum(n) <= max(max_rows, o.min_rows)]

    def ratio(lens: tuple[int, ...], tau: int) -> Fraction:
        return Fraction(tau, max(1, int(step_ns[sum(lens)])))

    chosen = tuple(plans["global"].verify_lens.tolist())
    taus = dict(every)
    best = max(ratio(n, tau) for n, tau in every)
    assert ratio(chosen, taus[chosen]) == best
    assert sum(chosen) == min(sum(n) for n, tau in every if ratio(n, tau) == best)  # the smallest on a tie
    for plan in plans.values():  # and no other way to spend as many rows gets further
        rows, tau = int(plan.stats[1]), int(plan.stats[3])
        assert tau == max(t for n, t in every if sum(n) == rows)
    assert plans["first_drop"].stats[0] == o.best_budget(step_ns.tolist(), first_drop=True)


@st.composite
def decisions(draw: st.DrawFn) -> tuple[torch.Tensor, dict[str, Any]]:
    """Confidences with many ties, and rules."""
    batch, gamma = draw(st.integers(1, 12)), draw(st.integers(1, 8))
    value = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(0, 1, width=32))
    rows = draw(st.lists(st.lists(value, min_size=gamma, max_size=gamma), min_size=batch, max_size=batch))
    high = draw(st.one_of(st.none(), st.integers(1, gamma + 1)))
    caps = draw(st.one_of(st.none(), st.lists(st.integers(0, gamma + 1), min_size=batch, max_size=batch)))
    rules = {
        "min_verify_len": draw(st.integers(0, high or gamma + 1)), "max_verify_len": high,
        "caps": None if caps is None else torch.tensor(caps, dtype=torch.int32),
        "survival_eps": draw(st.sampled_from([2.0**-20, 1e-6, 0.3, 1.0])),
    }  # fmt: skip
    return torch.tensor(rows, dtype=torch.float32), rules


PROPERTY = settings(max_examples=150, deadline=None)


@PROPERTY
@given(decisions())
def test_lengths_grow_with_the_budget_one_row_at_a_time(decision: tuple[torch.Tensor, dict[str, Any]]) -> None:
    """Monotone, within floor and cap, rows = Σ lens, and tau rises by the survival of the row that is added."""
    confidence, rules = decision
    survival = dspark_ops.prefix_survival(confidence)
    width = confidence.shape[1] + 1
    cap = torch.full((len(survival),), rules["max_verify_len"] or width)
    if rules["caps"] is not None:
        cap = cap.minimum(rules["caps"])
    before = None
    for budget in range(survival.numel() + 2):
        lens, stats = dspark_ops.schedule_verify_lens(survival, budget, **rules)
        assert int(lens.sum()) == stats[1]
        assert bool((lens <= cap).all()) and bool((lens >= cap.clamp(max=max(rules["min_verify_len"], 1))).all())
        if before is not None:
            step = lens - before[0]
            assert bool((step >= 0).all()) and int(step.sum()) <= 1
            gain = int(stats[3] - before[1][3])
            grown = step.nonzero().flatten().tolist()
            assert gain == sum(q43(survival[r, lens[r] - 2].item()) for r in grown)
            if grown:
                assert survival[grown[0], lens[grown[0]] - 2] >= rules["survival_eps"]
        before = (lens, stats)


@PROPERTY
@given(decisions(), st.randoms(use_true_random=False), st.integers(0, 100))
def test_permuting_requests_permutes_lengths_except_on_ties(
    decision: tuple[torch.Tensor, dict[str, Any]], rng: Random, budget: int
) -> None:
    confidence, rules = decision
    order = list(range(len(confidence)))
    rng.shuffle(order)
    shuffled = {**rules, "caps": None if rules["caps"] is None else rules["caps"][order]}
    a = dspark_ops.allocate_verify_lens(confidence, budget=budget, **rules)
    b = dspark_ops.allocate_verify_lens(confidence[order], budget=budget, **shuffled)
    assert a.stats[1] == b.stats[1] and a.stats[3] == b.stats[3]
    differs = (a.verify_lens[order] != b.verify_lens).nonzero().flatten().tolist()
    edge = {float(b.survival[i, int(max(a.verify_lens[order[i]], b.verify_lens[i])) - 2]) for i in differs}
    assert len(edge) <= 1, "requests whose length changed must be tied at the cut"


@PROPERTY
@given(decisions(), st.randoms(use_true_random=False), st.sampled_from(["global", "first_drop"]))
def test_fused_equals_composed(decision: tuple[torch.Tensor, dict[str, Any]], rng: Random, search: str) -> None:
    confidence, rules = decision
    step_ns = cost_row(rng, confidence.shape[0] * (confidence.shape[1] + 1))
    fused = dspark_ops.allocate_verify_lens(confidence, step_ns, search=search, **rules)
    survival = dspark_ops.prefix_survival(confidence)
    budget = dspark_ops.plan_budget(survival, step_ns, search=search, **rules)[0]
    lens, stats = dspark_ops.schedule_verify_lens(survival, int(budget), step_ns=step_ns, **rules)
    assert torch.equal(fused.verify_lens, lens) and torch.equal(fused.stats, stats)
    assert torch.equal(fused.survival, survival)
