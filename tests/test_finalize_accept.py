"""`finalize_accept`: SGLang's golden cases, an independent slow loop, inactive requests."""

from __future__ import annotations

import pytest
import torch
from accept_slow import GOLDEN, check_outputs, ints, slow_commit, slow_target

import dspark_ops
from dspark_ops.testing import case, run


def test_golden(backend: str) -> None:
    for c in GOLDEN:
        drafts = torch.tensor(c["draft_tokens"])
        with dspark_ops.use_backend(backend):
            got = dspark_ops.finalize_accept(
                ints(c["raw_correct_len"]),
                drafts,
                ints(c["verify_lens"]),
                ints(c["prefix_lens"]),
                bonus=torch.tensor(c["bonus"]),
            )
        assert got.correct_len.tolist() == c["correct_len"]
        assert got.trimmed.tolist() == c["trimmed"]
        assert got.commit_len.tolist() == c["commit_lens"]
        assert got.new_seq_len is not None and got.new_seq_len.tolist() == c["new_seq_lens"]
        assert got.out_tokens.tolist() == c["out_tokens"]
        assert got.bonus.tolist() == c["bonus"]


def test_equals_the_slow_loop(backend: str) -> None:
    for seed in range(200):
        args = case("finalize_accept", seed)
        raws, drafts, verify_lens, prefix, bonus, target, cu = args[:7]
        batch, gamma = drafts.shape
        want = []
        for r in range(batch):
            raw, length = (min(max(int(x[r]), 0), top) for x, top in ((raws, gamma), (verify_lens, gamma + 1)))
            rows = [bonus[r].item()] * (gamma + 1) if bonus is not None else slow_target(target, cu, r, gamma + 1)
            done = slow_commit(raw, length, drafts[r].tolist(), 0 if prefix is None else int(prefix[r]), rows)
            done[1] = done[1] if cu is None else 0  # compact: rows past l - 1 were never computed
            want.append(done)
        check_outputs(run("finalize_accept", args, backend)[-6:], want)


def test_verify_len_0_commits_nothing_and_leaves_no_garbage(backend: str) -> None:
    """Reported fault: rows of length 0 kept what memory held, and gave token ids out of range."""
    drafts = torch.full((2, 3), 77)
    offset = torch.tensor([0.5, 0.5])
    with dspark_ops.use_backend(backend):
        got = dspark_ops.finalize_accept(
            ints([3, 3]),
            drafts,
            ints([0, 4]),
            torch.tensor([10, 10]),
            bonus=torch.tensor([9, 9]),
            offset=offset,
            confidence=torch.zeros(2, 3),
        )
    assert [x[0].tolist() for x in got] == [0, 0, 0, 0, 10, [0, 0, 0, 0]]
    assert [x[1].tolist() for x in got] == [3, 0, 9, 4, 14, [77, 77, 77, 9]]
    assert offset[0] == 0.5 and offset[1] > 0.5


def test_out_and_strided_input(backend: str) -> None:
    drafts = torch.arange(24).reshape(2, 12)[:, ::4]
    assert not drafts.is_contiguous()
    out = dspark_ops.Accepted(
        *(torch.full((2,), 55, dtype=torch.int32) for _ in range(2)),
        torch.full((2,), 55),
        torch.full((2,), 55, dtype=torch.int32),
        None,
        torch.full((2, 4), 55),
    )
    with dspark_ops.use_backend(backend):
        got = dspark_ops.finalize_accept(ints([1, 3]), drafts, ints([4, 2]), bonus=torch.tensor([90, 91]), out=out)
    assert got is out
    assert out.out_tokens.tolist() == [[0, 90, 8, 0], [12, 91, 20, 0]]
    assert out.correct_len.tolist() == [1, 1] and out.trimmed.tolist() == [0, 2] and out.new_seq_len is None


def test_compiles() -> None:
    compiled = torch.compile(dspark_ops.finalize_accept, fullgraph=True, backend="aot_eager")
    args = (ints([1, 3]), torch.arange(6).reshape(2, 3), ints([4, 2]), ints([5, 6]))
    for a, b in zip(
        compiled(*args, bonus=args[1][:, 0]), dspark_ops.finalize_accept(*args, bonus=args[1][:, 0]), strict=True
    ):
        assert torch.equal(a, b)


def test_a_direct_call_with_a_missing_output_is_refused() -> None:
    args = list(case("finalize_accept", 0))
    args[-1] = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=r"out\.out_tokens: expected"):
        torch.ops.dspark.finalize_accept(*args)
