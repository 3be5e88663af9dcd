"""Benchmark of the acceptance operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from case import ROTATE, Case, Rival, all_equal, random, verify_lens

import dspark_ops


def finalize(batch: int, gamma: int, s: Rival) -> Case:
    """From an acceptance rule's lengths to everything the step commits."""
    width, g = gamma + 1, random(10)
    lens = verify_lens(batch, width, 11)[0]
    raw = [torch.randint(0, width, (batch,), generator=g, dtype=torch.int32) for _ in range(ROTATE)]
    drafts, bonus = torch.randint(0, 9999, (batch, gamma), generator=g), torch.randint(0, 9999, (batch,), generator=g)
    prefix = torch.randint(1, 4096, (batch,), generator=g)
    out = dspark_ops.finalize_accept(raw[0], drafts, lens, prefix, bonus=bonus)

    def ours(i: int) -> Any:
        return dspark_ops.finalize_accept(raw[i % ROTATE], drafts, lens, prefix, bonus=bonus, out=out)

    if s is None:
        return Case("finalize_accept", batch, gamma, ours)

    def rival(i: int) -> Any:
        correct, trim = s.cap_correct_len(correct_len=raw[i % ROTATE], verify_lens=lens)
        done = s.finalize_accept_lens(correct_len=correct, cap_trim_lens=trim, prefix_lens=prefix)
        tokens = s.build_out_tokens(
            draft_tokens=drafts, correct_len=correct, bonus=bonus, verify_num_draft_tokens=width, gamma=gamma
        )
        return correct, done.cap_trim_lens, done.commit_lens, done.new_seq_lens, tokens

    def committed(r: Any) -> Any:
        return r.correct_len, r.trimmed, r.commit_len, r.new_seq_len, r.out_tokens

    def check() -> None:
        all_equal(ours, rival, committed, "finalize_accept")

    return Case("finalize_accept", batch, gamma, ours, {"SGLang": rival}, check)


def greedy(batch: int, gamma: int) -> Iterator[Case]:
    """Greedy acceptance, alone and with the offsets learning in the same call; and the learning alone."""
    width, g = gamma + 1, random(12)
    lens = verify_lens(batch, width, 13)
    drafts, target = (torch.randint(0, 3, (batch, n), generator=g) for n in (gamma, width))
    prefix = torch.randint(1, 4096, (batch,), generator=g)
    confidence, offset = torch.rand(batch, gamma, generator=g), torch.zeros(batch)
    out = dspark_ops.accept_greedy(drafts, target, lens[0], prefix)
    correct = out.correct_len.clone()

    def accept(i: int) -> Any:
        return dspark_ops.accept_greedy(drafts, target, lens[i % ROTATE], prefix, out=out)

    def learn(i: int) -> Any:
        return dspark_ops.accept_greedy(
            drafts, target, lens[i % ROTATE], prefix, offset=offset, confidence=confidence, out=out
        )

    yield Case("accept_greedy", batch, gamma, accept)
    yield Case("accept_greedy+offset", batch, gamma, learn, state=(offset,))
    yield Case(
        "update_offset", batch, gamma,
        lambda i: dspark_ops.update_offset(offset, confidence, correct, lens[i % ROTATE]), state=(offset,),
    )  # fmt: skip


def cases(batch: int, gamma: int, s: Rival) -> Iterator[Case]:
    """Every case at one size."""
    yield finalize(batch, gamma, s)
    yield from greedy(batch, gamma)
