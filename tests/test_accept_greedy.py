"""`accept_greedy`: an independent slow loop, compact = cap-accept, golden cases, learning in the same launch."""

from __future__ import annotations

import torch
from accept_slow import GOLDEN, check_outputs, ints, slow_commit, slow_target
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import dspark_ops
from dspark_ops.testing import case, run


def test_equals_the_slow_loop(backend: str) -> None:
    for seed in range(200):
        args = case("accept_greedy", seed)
        drafts, target, verify_lens, prefix, cu = args[:5]
        batch, gamma = drafts.shape
        want = []
        for r in range(batch):
            length = min(max(int(verify_lens[r]), 0), gamma + 1)
            rows = slow_target(target, cu, r, gamma + 1)
            computed = gamma if cu is None else min(length - 1, gamma)
            raw = 0
            while raw < computed and rows[raw] == drafts[r, raw]:
                raw += 1
            want.append(slow_commit(raw, length, drafts[r].tolist(), 0 if prefix is None else int(prefix[r]), rows))
        check_outputs(run("accept_greedy", args, backend)[-6:], want)


def to_compact(strided: Tensor, verify_lens: Tensor) -> tuple[Tensor, Tensor]:
    cu = torch.cat([ints([0]), verify_lens.cumsum(0, dtype=torch.int32)])
    return torch.cat([strided[r, :n] for r, n in enumerate(verify_lens.tolist())]), cu


def test_compact_and_cap_accept_commit_the_same(backend: str) -> None:
    """Reported fault: two ways to run one plan committed different tokens, and verify rounds were wasted."""
    trims = 0
    for seed in range(50):
        g = torch.Generator().manual_seed(seed)
        batch, gamma = 1 + seed % 9, 1 + seed % 7
        drafts = torch.randint(2, (batch, gamma), generator=g)
        target = torch.randint(2, (batch, gamma + 1), generator=g)
        verify_lens = torch.randint(gamma + 2, (batch,), generator=g, dtype=torch.int32)
        confidence, offsets = torch.rand(batch, gamma, generator=g), [torch.zeros(batch), torch.zeros(batch)]
        compact, cu = to_compact(target, verify_lens)
        with dspark_ops.use_backend(backend):
            learn = {"confidence": confidence, "prefix": verify_lens}
            cap = dspark_ops.accept_greedy(drafts, target, verify_lens, offset=offsets[0], **learn)
            got = dspark_ops.accept_greedy(drafts, compact, verify_lens, cu_seqlens=cu, offset=offsets[1], **learn)
        for name, a, b in zip(got._fields, got, cap, strict=True):
            if name == "trimmed":
                assert not a.any()
                trims += int(b.sum())
            else:
                assert torch.equal(a, b), name
        assert torch.equal(*offsets)
    assert trims > 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=6))
def test_any_plan_commits_a_prefix_of_what_static_commits(requests: list[tuple[int, int]]) -> None:
    """Greedy acceptance under any plan yields the first tokens of the full verification: plans are lossless."""
    verify_lens, matches = ints([n for n, _ in requests]), [m for _, m in requests]
    target = torch.arange(4 * len(requests)).reshape(-1, 4)
    drafts = torch.stack([torch.where(torch.arange(3) < m, t[:3], -1) for m, t in zip(matches, target, strict=True)])
    got = dspark_ops.accept_greedy(drafts, target, verify_lens)
    full = dspark_ops.accept_greedy(drafts, target, torch.full_like(verify_lens, 4))
    for r, n in enumerate(got.commit_len.tolist()):
        assert n == min(int(verify_lens[r]), int(full.commit_len[r]))
        assert got.out_tokens[r, :n].tolist() == full.out_tokens[r, :n].tolist()


def test_golden(backend: str) -> None:
    """The golden cases as target tokens: equal to the draft up to raw, then different."""
    for c in GOLDEN:
        drafts = torch.tensor(c["draft_tokens"])
        target = torch.cat([drafts, torch.zeros_like(drafts[:, :1])], dim=1)
        for r, (raw, correct, bonus) in enumerate(zip(c["raw_correct_len"], c["correct_len"], c["bonus"], strict=True)):
            target[r, raw] = -1
            if correct == raw:
                target[r, raw] = bonus
        with dspark_ops.use_backend(backend):
            got = dspark_ops.accept_greedy(drafts, target, ints(c["verify_lens"]), ints(c["prefix_lens"]))
        assert got.correct_len.tolist() == c["correct_len"]
        assert got.trimmed.tolist() == c["trimmed"]
        assert got.commit_len.tolist() == c["commit_lens"]
        assert got.new_seq_len is not None and got.new_seq_len.tolist() == c["new_seq_lens"]
        # Where the cut came first, greedy verification takes the draft itself as the bonus: the target agreed with it.
        for r in range(len(drafts)):
            if not c["trimmed"][r]:
                assert got.out_tokens[r].tolist() == c["out_tokens"][r]


def test_learns_as_update_offset_does(backend: str) -> None:
    drafts, target = (
        torch.tensor([[1, 2, 3], [1, 2, 3], [1, 2, 3]]),
        torch.tensor([[1, 2, 9, 4], [1, 2, 3, 4], [0] * 4]),
    )
    verify_lens, slots, confidence = ints([4, 2, 0]), torch.tensor([3, 0, 1]), torch.full((3, 3), 0.25)
    rates = {"decay": 0.5, "eta": 0.3, "limit": 0.6}
    fused, apart = torch.ones(5), torch.ones(5)
    with dspark_ops.use_backend(backend):
        got = dspark_ops.accept_greedy(
            drafts, target, verify_lens, offset=fused, confidence=confidence, slots=slots, **rates
        )
        dspark_ops.update_offset(apart, confidence, got.correct_len, verify_lens, slots=slots, **rates)
    assert got.correct_len.tolist() == [2, 1, 0] and got.trimmed.tolist() == [0, 2, 0]
    assert torch.equal(fused, apart)
    assert fused[[1, 2, 4]].tolist() == [1.0, 1.0, 1.0] and fused[3] == 0.6 and fused[0] not in (0.5, 1.0)


def test_out_and_strided_input(backend: str) -> None:
    target = torch.tensor([[1, 5], [2, 6], [3, 7], [4, 8]]).T
    assert not target.is_contiguous()
    drafts = torch.tensor([[1, 2, 0], [5, 6, 7]])
    with dspark_ops.use_backend(backend):
        first = dspark_ops.accept_greedy(drafts, target, ints([4, 4]), torch.tensor([1, 2]))
        got = dspark_ops.accept_greedy(drafts, target.reshape(-1), ints([2, 0]), torch.tensor([1, 2]), out=first)
    assert all(a is b for a, b in zip(got, first, strict=True))
    assert got.out_tokens.tolist() == [[1, 2, 0, 0], [0, 0, 0, 0]]
    assert got.new_seq_len is not None and got.new_seq_len.tolist() == [3, 2]


def test_empty(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        none = torch.zeros(0, dtype=torch.int64)
        got = dspark_ops.accept_greedy(none.reshape(0, 3), none.reshape(0, 4), ints([]), cu_seqlens=None)
        assert got.out_tokens.shape == (0, 4)
        got = dspark_ops.accept_greedy(torch.zeros(2, 3).long(), none, ints([4, 4]), cu_seqlens=ints([0, 0, 0]))
    assert got.correct_len.tolist() == [0, 0] and got.commit_len.tolist() == [1, 1] and got.bonus.tolist() == [0, 0]


def test_compiles() -> None:
    compiled = torch.compile(dspark_ops.accept_greedy, fullgraph=True, backend="aot_eager")
    drafts, target = torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 2, 9, 3, 5])
    args = (drafts, target, ints([3, 2]), ints([5, 6]))
    offsets = [torch.zeros(2), torch.zeros(2)]
    got, want = (
        f(*args, cu_seqlens=ints([0, 3, 5]), offset=o, confidence=torch.full((2, 2), 0.5))
        for f, o in zip((compiled, dspark_ops.accept_greedy), offsets, strict=True)
    )
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a, b)
    assert torch.equal(*offsets) and offsets[0].all()
