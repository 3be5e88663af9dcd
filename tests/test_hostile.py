"""Values that no honest runtime passes: a defined result or an error, and no stray access (see test_sanitizers)."""

from __future__ import annotations

from random import Random

import pytest
import torch

import dspark_ops
from dspark_ops.testing.planning import confidences

EDGES = [-(1 << 63), -(1 << 31), -2, -1, 0, 1, 5, 6, 1 << 17, (1 << 31) - 1, (1 << 63) - 1]
EDGES32 = [e for e in EDGES if -(1 << 31) <= e < 1 << 31]


@pytest.mark.parametrize("edge", EDGES)
def test_slots_budget_base(edge: int, backend: str) -> None:
    c = confidences(Random(1), 5, 3, "uniform")
    slots = torch.tensor([edge, 0, edge, 4])
    step_ns = torch.full((17,), 1000, dtype=torch.int32)
    with dspark_ops.use_backend(backend):
        plan = dspark_ops.allocate_verify_lens(
            c, step_ns, torch.tensor(edge), slots=slots, history=c, history_slots=slots,
        )  # fmt: skip
        given = dspark_ops.allocate_verify_lens(c, slots=slots, budget=torch.tensor([edge]))
    inside = 0 <= edge < 5
    assert torch.equal(plan.survival[0], plan.survival[1] if edge == 0 else plan.survival[2])
    assert bool((plan.survival[0] > 0).any()) == inside
    assert 1 <= plan.stats[4] <= (1 << 31) - 1
    assert int(given.stats[0]) == max(0, min(edge, 12))


@pytest.mark.parametrize("edge", EDGES32)
def test_caps_tiers_and_rows(edge: int, backend: str) -> None:
    c = torch.full((4, 3), 0.9)
    caps = torch.tensor([edge, 4, edge, 2], dtype=torch.int32)
    tiers = torch.tensor([edge], dtype=torch.int32)
    step_ns = torch.full((1,), edge, dtype=torch.int32)
    with dspark_ops.use_backend(backend):
        plan = dspark_ops.allocate_verify_lens(
            c, step_ns, caps=caps, tiers=tiers, fill_tier=True, search="global", max_rows=0
        )
    cap = max(0, min(edge, 4))
    assert plan.verify_lens.tolist() == [min(cap, 1), 1, min(cap, 1), 1]  # max_rows = 0 allows b = 0 only
    assert plan.stats.tolist()[2] == (edge if edge >= int(plan.stats[1]) else -1)
    assert plan.stats[4] == max(1, edge)


@pytest.mark.parametrize("edge", EDGES32)
def test_verify_lens(edge: int, backend: str) -> None:
    lens = torch.tensor([2, edge, 1], dtype=torch.int32)
    tokens, drafts = torch.arange(3), torch.arange(9).reshape(3, 3)
    with dspark_ops.use_backend(backend):
        layout = dspark_ops.ragged_layout(
            lens, 16, prefix=torch.tensor([7, 8, 9]), root_tokens=tokens, draft_tokens=drafts
        )
        padded, seqused = dspark_ops.pad_to_bucket(lens, 16, 5, cap=4)
        wide = dspark_ops.scatter_to_strided(torch.ones(16, 2), layout.cu_seqlens, 4, fill=-1)
        dspark_ops.gather_from_strided(wide, layout.cu_seqlens, 16)
        accepted = dspark_ops.accept_greedy(
            drafts, torch.zeros(16, dtype=torch.int64), lens, cu_seqlens=layout.cu_seqlens
        )
    length = max(0, edge)
    assert layout.cu_seqlens.tolist() == [0, 2, min(2 + length, (1 << 31) - 1), min(3 + length, (1 << 31) - 1)]
    assert int((layout.row_request == 1).sum()) == min(length, 14)
    assert int(padded[1]) == int(seqused[1]) == min(length, 4)
    assert int((wide[4:8] == 1).all(1).sum()) == min(length, 4)
    assert int(accepted.commit_len[1]) <= min(length, 4)
