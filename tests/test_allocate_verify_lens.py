"""The front door: composition, history, slots, half precision, calibration, workspaces, compile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier
from typing import Any

import pytest
import torch

import dspark_ops
from conftest import cases_for
from dspark_ops.testing.planning import confidences, cost_row
from oracle import Oracle, Rules, survival


def staircase(rows: int) -> torch.Tensor:
    m = torch.arange(rows + 1)
    return (20_000 + ((m + 7) // 8) * 4_000).to(torch.int32)


def test_is_the_composition_of_the_operators(backend: str) -> None:
    rng = Random(0)
    with dspark_ops.use_backend(backend):
        for _ in range(cases_for(backend, 60)):
            batch, gamma = rng.randint(1, 40), rng.choice([1, 5, 7])
            c, old = confidences(rng, batch, gamma), confidences(rng, batch, gamma)
            fresh = torch.rand(batch, generator=torch.Generator().manual_seed(rng.getrandbits(32))) < 0.7
            step_ns = cost_row(rng, batch * (gamma + 1))
            plan = dspark_ops.allocate_verify_lens(c, step_ns, 500, history=old, fresh=fresh)
            planned_on = dspark_ops.prefix_survival(old, fresh=fresh)
            budget = dspark_ops.plan_budget(planned_on, step_ns, 500, search="global")[0]
            lens, stats = dspark_ops.schedule_verify_lens(
                dspark_ops.prefix_survival(c), budget.clone(), step_ns=step_ns, base_ns=500
            )
            assert torch.equal(plan.verify_lens, lens) and torch.equal(plan.stats, stats)
            assert torch.equal(plan.cu_seqlens[1:], lens.cumsum(0, dtype=torch.int32)) and plan.cu_seqlens[0] == 0


def test_history_decides_the_budget_and_current_confidences_only_rank(backend: str) -> None:
    step_ns = staircase(24)
    old = torch.tensor([[0.9, 0.9, 0.9], [0.1, 0.1, 0.1]])
    with dspark_ops.use_backend(backend):
        a = dspark_ops.allocate_verify_lens(torch.tensor([[0.9] * 3, [0.1] * 3]), step_ns, history=old)
        b = dspark_ops.allocate_verify_lens(torch.tensor([[0.1] * 3, [0.9] * 3]), step_ns, history=old)
    assert a.stats[0] == b.stats[0]
    assert a.verify_lens.tolist() == b.verify_lens.flip(0).tolist()


def test_row_without_fresh_history_is_judged_optimistically(backend: str) -> None:
    step_ns, c = staircase(24), torch.full((2, 3), 0.9)
    ring = torch.zeros(5, 3)
    generation = torch.tensor([4, 4, 4, 4, 4])
    slots = torch.tensor([0, 3], dtype=torch.int32)
    with dspark_ops.use_backend(backend):
        stale = dspark_ops.allocate_verify_lens(
            c, step_ns, history=ring, history_slots=slots, generation=generation, expected=torch.tensor([5, 5])
        )
        fresh = dspark_ops.allocate_verify_lens(
            c, step_ns, history=ring, history_slots=slots, generation=generation, expected=torch.tensor([4, 4])
        )
        absent = dspark_ops.allocate_verify_lens(
            c, step_ns, history=ring, history_slots=torch.tensor([5, -1], dtype=torch.int32)
        )
    assert stale.verify_lens.tolist() == [4, 4] == absent.verify_lens.tolist()
    assert fresh.verify_lens.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_and_slots(dtype: torch.dtype, backend: str) -> None:
    table, slots = confidences(Random(2), 30, 7).to(dtype), torch.tensor([29, 0, 3, 99, -1, 3])
    with dspark_ops.use_backend(backend):
        got = dspark_ops.allocate_verify_lens(table, staircase(64), slots=slots, search="global")
        rows = table[slots.clamp(0, 29)].float()
        rows[3:5] = 0
        want = dspark_ops.allocate_verify_lens(rows, staircase(64), search="global")
    for a, b in zip(got[:4], want[:4], strict=True):
        assert torch.equal(a, b)


def test_logits_history_and_offsets_equal_their_confidences(backend: str) -> None:
    """Planning from logits = planning from the c that the same back end makes of them."""
    g = torch.Generator().manual_seed(5)
    z, old = torch.randn(40, 7, generator=g), torch.randn(64, 7, generator=g).bfloat16()
    scale, bias = torch.rand(7, generator=g), torch.randn(7, generator=g)
    offset, slots = torch.randn(40, generator=g), torch.randperm(40, generator=g)[:25].int()
    history_slots, fresh = torch.randint(0, 64, (25,), generator=g), torch.rand(25, generator=g) < 0.8
    calibration: dict[str, Any] = {"scale": scale, "bias": bias}
    with dspark_ops.use_backend(backend):
        plan = dspark_ops.allocate_verify_lens(
            logits=z, step_ns=staircase(256), offset=offset, slots=slots, history=old, history_slots=history_slots,
            fresh=fresh, **calibration,
        )  # fmt: skip
        c_now, c_old = torch.empty(25, 7), torch.empty(25, 7)
        chosen = offset[slots.long()]
        dspark_ops.prefix_survival(logits=z[slots.long()], offset=chosen, out_confidence=c_now, **calibration)
        dspark_ops.prefix_survival(logits=old[history_slots], offset=chosen, out_confidence=c_old, **calibration)
        want = dspark_ops.allocate_verify_lens(c_now, staircase(256), history=c_old, fresh=fresh)
    assert plan.confidence is not None and torch.equal(plan.confidence, c_now)
    for a, b in zip(plan[:4], want[:4], strict=True):
        assert torch.equal(a, b)


def test_equals_definition_with_first_drop(backend: str) -> None:
    rng = Random(9)
    for _ in range(cases_for(backend, 40)):
        c, step_ns = confidences(rng, rng.randint(1, 8), 4), cost_row(rng, 40)
        with dspark_ops.use_backend(backend):
            plan = dspark_ops.allocate_verify_lens(c, step_ns, search="first_drop")
        o = Oracle(survival(c.tolist()), Rules())
        assert plan.verify_lens.tolist() == o.lens(o.best_budget(step_ns.tolist(), first_drop=True))


def test_no_requests(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        plan = dspark_ops.allocate_verify_lens(
            torch.empty(0, 7), torch.tensor([900], dtype=torch.int32), search="global",
            tiers=torch.tensor([8], dtype=torch.int32), fill_tier=True,
        )  # fmt: skip
    assert plan.verify_lens.shape == (0,) and plan.survival.shape == (0, 7)
    assert plan.cu_seqlens.tolist() == [0] and plan.stats.tolist() == [0, 0, 8, 0, 900]


def test_workspace_is_reused_and_strided_inputs_are_read(backend: str) -> None:
    wide = torch.rand(12, 14)
    with dspark_ops.use_backend(backend):
        plan = dspark_ops.allocate_verify_lens(wide[::2, ::2], staircase(96), search="global")
        again = dspark_ops.allocate_verify_lens(wide[1::2, 1::2], staircase(96), search="global", out=plan)
        want = dspark_ops.allocate_verify_lens(wide[1::2, 1::2].contiguous(), staircase(96), search="global")
    assert again is plan
    for a, b in zip(again[:4], want[:4], strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("kind", ["uniform", "near", "ties"])
def test_past_1024_requests_and_up_to_the_limit(kind: str, backend: str) -> None:
    batch = 32768 if kind == "ties" or cases_for(backend, 5) > 1 else 2048
    c = confidences(Random(4), batch, 7, kind)
    with dspark_ops.use_backend(backend):
        plan = dspark_ops.allocate_verify_lens(c, staircase(1 << 18), search="global")
        assert int(plan.cu_seqlens[-1]) == int(plan.stats[1]) == int(plan.verify_lens.sum())
    with dspark_ops.use_backend("reference"):
        want = dspark_ops.allocate_verify_lens(c, staircase(1 << 18), search="global")
    assert torch.equal(plan.verify_lens, want.verify_lens) and torch.equal(plan.stats, want.stats)


def test_concurrent_callers_do_not_share_scratch() -> None:
    """Operators release the interpreter lock; each thread must find its own scratch, whatever sizes the others use."""
    rng, calls, barrier = Random(6), 300, Barrier(4)

    def inputs(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        return confidences(rng, batch, 7, "uniform"), cost_row(rng, batch * 8)

    def lens(given: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return dspark_ops.allocate_verify_lens(*given, search="global").verify_lens

    work = [[inputs(batch), inputs(2 * batch)] for batch in (3, 40, 150, 400)]
    serial = [[lens(given) for given in mine] for mine in work]

    def wrong(thread: int) -> int:
        barrier.wait()
        return sum(not torch.equal(lens(work[thread][i % 2]), serial[thread][i % 2]) for i in range(calls))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(wrong, range(4))) == [0] * 4


def test_compiles_and_matches(backend: str) -> None:
    c, old, step_ns = torch.rand(8, 7), torch.rand(8, 7), staircase(64)

    def step(c: torch.Tensor, old: torch.Tensor) -> dspark_ops.Plan:
        return dspark_ops.allocate_verify_lens(c, step_ns, history=old)

    with dspark_ops.use_backend(backend):
        got = torch.compile(step, fullgraph=True)(c, old)
        want = step(c, old)
    for a, b in zip(got[:4], want[:4], strict=True):
        assert torch.equal(a, b)
