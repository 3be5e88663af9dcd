"""Which plans keep the target's distribution under sampled acceptance: the paper's appendix A, simulated.

The target wants token A with 0.7 and B with 0.3, the draft proposes either with 0.5, so a first draft is kept with 0.8.
The confidence of the second draft tells which token the first one was: 0.9 after A, 0 after B. A plan that uses it to
decide whether the *first* draft is verified looks at that token's own future, and the output shows it.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import dspark_ops

A, B = 0, 1
TARGET = torch.tensor([0.7, 0.3], dtype=torch.float64)
BIASED = torch.tensor([0.85, 0.15], dtype=torch.float64)
CONFIDENCE = torch.tensor([[0.8, 0.9], [0.8, 0.0]])  # after A, after B
# The paper's steps per second for 1, 2 and 3 rows, times 1000 (a step must fit 2^31 ns); made longer for two requests.
ONE = dspark_ops.FloorTable([1, 2, 3], [1000.0, 500.0, 450.0], 3)
TWO = dspark_ops.FloorTable([2, 3, 4, 5, 6], [1000.0, 800.0, 600.0, 530.0, 500.0], 6)
SAMPLES = 200_000
LARGEST = 80_000  # requests in one call of 3 rows each


def chi_square(counts: Tensor, probability: Tensor) -> float:
    expected = counts.sum() * probability
    return float(((counts - expected) ** 2 / expected).sum())


def plans(requests: int, kind: str, table: dspark_ops.FloorTable) -> Tensor:
    """Verify lengths for every pair of histories and first drafts: int [2^requests histories, 2^requests, requests]."""
    cases = torch.cartesian_prod(*[torch.tensor([A, B])] * requests).reshape(-1, requests)
    lens = []
    for past in cases:
        for now in cases:
            given = {"history": CONFIDENCE[past]} if kind == "history" else {"search": kind}
            lens.append(dspark_ops.allocate_verify_lens(CONFIDENCE[now], table, **given).verify_lens)
    return torch.stack(lens).reshape(len(cases), len(cases), requests)


def first_tokens(requests: int, kind: str, table: dspark_ops.FloorTable, seed: int) -> Tensor:
    """The first committed token of each request of `SAMPLES` steps, int64 [SAMPLES, requests]."""
    g = torch.Generator().manual_seed(seed)
    shape = (SAMPLES, requests)
    draft = torch.randint(2, shape, generator=g)
    past = torch.randint(2, shape, generator=g)
    place = 2 ** torch.arange(requests - 1, -1, -1)
    lens = plans(requests, kind, table)[(past * place).sum(1), (draft * place).sum(1)]
    # Rejection sampling: A is always kept, B with 0.3 / 0.5; the rest of the target's mass is all on A. A first draft
    # that is not verified leaves its place to a sample of the target.
    kept = torch.rand(shape, generator=g) < torch.where(draft == A, 1.0, 0.6)
    sampled = (torch.rand(shape, generator=g) >= 0.7).long()
    bonus = torch.where(lens >= 2, torch.where(kept, sampled, A), sampled)
    tokens = []
    for k, d, n, b in zip(*(t.flatten().split(LARGEST) for t in (kept, draft, lens, bonus)), strict=True):
        drafts, prefix = torch.stack([d, d], 1), torch.zeros(len(d), dtype=torch.int64)
        tokens.append(dspark_ops.finalize_accept(k.int(), drafts, n, prefix, bonus=b).out_tokens[:, 0])
    return torch.cat(tokens).reshape(shape)


def test_the_papers_example_plans() -> None:
    """Global verifies both drafts after A and none after B; first_drop and a hopeless history none."""
    assert plans(1, "global", ONE).flatten().tolist() == [3, 1, 3, 1]
    assert plans(1, "first_drop", ONE).flatten().tolist() == [1, 1, 1, 1]
    # Budget 2 or 0 by the history; the current 0 is no candidate, but the first draft is verified all the same.
    assert plans(1, "history", ONE).flatten().tolist() == [3, 2, 1, 1]


@pytest.mark.parametrize("kind, expected", [("global", BIASED), ("first_drop", TARGET), ("history", TARGET)])
def test_distribution_of_the_first_token(kind: str, expected: Tensor) -> None:
    counts = torch.bincount(first_tokens(1, kind, ONE, seed=7)[:, 0], minlength=2).double()
    other = TARGET if expected is BIASED else BIASED
    assert chi_square(counts, expected) < 15.1  # one degree of freedom, 1 in 10,000
    assert chi_square(counts, other) > 1000


@pytest.mark.parametrize("kind, lossless", [("global", False), ("first_drop", True), ("history", True)])
def test_two_requests_that_share_a_budget(kind: str, lossless: bool) -> None:
    """Their tokens stay right and independent, though one request's confidences move the other's rows."""
    if kind == "history":
        assert len(plans(2, kind, TWO).flatten(0, 1).unique(dim=0)) > 4, "the plans must depend on both"
    tokens = first_tokens(2, kind, TWO, seed=11)
    counts = torch.bincount(tokens[:, 0] * 2 + tokens[:, 1], minlength=4).double()
    statistic = chi_square(counts, torch.outer(TARGET, TARGET).flatten())
    assert statistic < 21.1 if lossless else statistic > 1000  # three degrees of freedom, 1 in 10,000
