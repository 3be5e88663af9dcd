"""A whole plan in one program and one launch, while the padded B·γ is at most 4096, or 8192 if the budget is given.

Everything stays in registers between the loads of the confidences and the stores of the results. A searched budget
needs one bitonic sort of bare 28-bit keys. A budget that is known (given, or searched on the history) needs none of
the current keys: `select_key` finds the cut by 14 reductions, whatever the size. So a plan on history sorts the history
only, which also halves the registers against sorting both orderings side by side.
Compiled for sm_90, a sort of 8192 keys spills, and so does a selection among 16384: past `MAX_SORTED` or
`MAX_SELECTED`, or for rows of more than `MAX_DRAFTS`, `_many_programs` takes over. Four keys a thread is the fewest
barriers (2048 keys: 127 with 16 warps, 207 with 8, 309 with 4) short of a spill (32 warps); one warp needs almost none.
The order inside is for the registers too: both calibrations come before the sort, or their constants outlive it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ._launch import EXACT, jit, padded
from ._plan import FIRST_DROP, Plan, rows
from ._planning import (
    Q_ONE,
    TOP_KEY,
    bounds,
    candidate_keys,
    execute,
    given_budget,
    key_q43,
    lengths,
    load_base,
    mandatory_tau,
    most_budget,
    select_key,
    step_time,
    write_stats,
)
from ._search import NEVER, chunk_best, chunk_stop, chunk_tau, settle, write_tier_base, write_tier_tau
from ._survival import load_confidence, running, unit_interval

MAX_SORTED, MAX_SELECTED = 4096, 8192  # B·γ as padded, for a searched and for a given budget
MAX_DRAFTS = 32  # the columns of a row are walked one by one
LEAST_REQUESTS, LEAST_DRAFTS = 16, 2  # fewer are padded: variants that are not worth their compilation


@triton.jit
def _ordered(s, k, cap, floor, least):
    """Keys and totals of a block of survivals [B, K]: (keys, tau0, M0, candidates)."""
    keys = candidate_keys(s, k[None, :], cap[:, None], floor[:, None], least)
    mandatory = tl.sum(tl.ravel(mandatory_tau(s, k[None, :], floor[:, None])), axis=0)
    tau0 = tl.sum((cap > 0).to(tl.int64), axis=0) * Q_ONE + mandatory
    count = tl.sum(tl.ravel((keys > 0).to(tl.int32)), axis=0)
    return keys, tau0, tl.sum(floor, axis=0), count


@triton.jit
def _search(
    keys, tau0, min_rows, most, count, step_ns, length, base, ppm, tiers, tier_count, tier_tau,
    FIRST_DROP: tl.constexpr,
):  # fmt: skip
    """The budget, and the sorted keys."""
    ordered = tl.sort(tl.reshape(keys, [keys.numel], can_reorder=True), descending=True)
    b = 1 + tl.arange(0, keys.numel)
    limit = tl.minimum(count, most)
    q, tau = chunk_tau(ordered, tau0)
    if FIRST_DROP:
        stop = chunk_stop(q, tau, b, min_rows, limit, step_ns, length, base)
        budget = tl.where(stop == NEVER, limit, stop - 1)
    else:
        best_tau, best_t, best_b = chunk_best(tau, b, min_rows, limit, step_ns, length, base)
        t0 = step_time(step_ns, length, base, min_rows)
        tau_full = tl.max(tl.where(b <= limit, tau, tau0), axis=0)  # tau never falls; a sum of q would keep q alive
        t_full = step_time(step_ns, length, base, min_rows + limit)
        budget = settle(best_tau, best_t, best_b, tau0, t0, tau_full, t_full, limit, ppm)
    if tier_tau is not None:
        write_tier_tau(tier_tau, tiers, tier_count, tau, b, min_rows, most, count)
        write_tier_base(tier_tau, tiers, tier_count, tau0, min_rows, most, count)
    return budget, ordered


@jit
def _kernel(
    # the current input: confidences or logits, or survival that is there already (survival_in)
    values, slots, value_rows, scale, bias, offset, offset_rows, survival_in,
    history, history_slots, history_rows, fresh, generation, expected,
    budget, budget_scalar, step_ns, length, base_ns: tl.int64, base_scalar,
    caps, min_verify_len, max_verify_len, least, max_rows, ppm, tiers, tier_count, fill,
    batch, gamma,
    survival, calibrated, verify_lens, cu_seqlens, stats, tier_tau,
    IS_LOGITS: tl.constexpr, FIRST_DROP: tl.constexpr, GIVEN: tl.constexpr, B: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    r, k = tl.arange(0, B), tl.arange(0, K)
    inside = r < batch
    r2, inside2, k2 = r[:, None], inside[:, None], k[None, :]
    one = tl.full([B, 1], 1.0, tl.float32)
    at, written = r2 * gamma + k2, inside2 & (k2 < gamma)
    cap, floor = bounds(caps, r, inside, min_verify_len, max_verify_len)
    base = load_base(base_ns, base_scalar)

    if survival_in is not None:
        c = unit_interval(tl.load(survival_in + at, mask=written, other=0.0))
        s, _ = running(c, k2, gamma, one, K, MINIMUM=True)
    else:
        c = load_confidence(
            values, slots, value_rows, scale, bias, offset, slots, offset_rows, None, None, None,
            r2, inside2, k2, gamma, IS_LOGITS, OPTIMISTIC=False,
        )  # fmt: skip
        s, _ = running(c, k2, gamma, one, K, MINIMUM=False)
        tl.store(survival + at, s, mask=written)
    if calibrated is not None:
        tl.store(calibrated + at, c, mask=written)

    keys, tau0, min_rows, count = _ordered(s, k, cap, floor, least)
    most = most_budget(min_rows, tl.sum(cap, axis=0), max_rows)
    if GIVEN:
        planned = given_budget(budget, budget_scalar, most)
    elif history is not None:
        old = load_confidence(
            history, history_slots, history_rows, scale, bias, offset, slots, offset_rows, fresh, generation, expected,
            r2, inside2, k2, gamma, IS_LOGITS, OPTIMISTIC=True,
        )  # fmt: skip
        old, _ = running(old, k2, gamma, one, K, MINIMUM=False)
        old_keys, old_tau0, _, old_count = _ordered(old, k, cap, floor, least)
        planned, _ = _search(
            old_keys, old_tau0, min_rows, most, old_count, step_ns, length, base, ppm, None, 0, None, FIRST_DROP,
        )  # fmt: skip
    else:
        planned, ordered = _search(
            keys, tau0, min_rows, most, count, step_ns, length, base, ppm, tiers, tier_count, tier_tau,
            FIRST_DROP,
        )  # fmt: skip

    tier, admitted = execute(planned, min_rows, most, count, tiers, tier_count, fill)
    if GIVEN or history is not None:
        v = select_key(keys, admitted)
    else:
        v = tl.min(tl.where(tl.arange(0, B * K) < admitted, ordered, TOP_KEY), axis=0)
        if verify_lens is None:
            keys = ordered  # the same set; unsorted, it need not outlive the sort
    ties = admitted - tl.sum(tl.ravel((keys > v).to(tl.int32)), axis=0)
    tau = tau0 + tl.sum(tl.ravel(tl.where(keys > v, key_q43(keys), 0)), axis=0) + ties * key_q43(v)
    write_stats(stats, planned, min_rows + admitted, tier, tau, step_ns, length, base)

    if verify_lens is not None:
        lens = lengths(keys, k, floor, v, ties)
        tl.store(verify_lens + r, lens, mask=inside)
        if cu_seqlens is not None:
            tl.store(cu_seqlens, 0)
            tl.store(cu_seqlens + 1 + r, tl.cumsum(lens, axis=0), mask=inside)


def shape(batch: int, gamma: int) -> tuple[int, int]:
    """B and K padded as the kernel is compiled."""
    return padded(batch, LEAST_REQUESTS), padded(gamma, LEAST_DRAFTS)


def fits(p: Plan) -> bool:
    b, k = shape(p.batch, p.gamma)
    return k <= MAX_DRAFTS and b * k <= (MAX_SELECTED if p.given else MAX_SORTED)


def warps(p: Plan, keys: int) -> int:
    """Four keys a thread, 16 warps at most; eight where all of a given survival of 2048 is searched, or it spills."""
    if keys == 2048 and p.survival_in is not None and not p.given and p.search != FIRST_DROP:
        return 8
    return min(max(keys // 128, 1), 16)


def launch(p: Plan) -> None:
    b, k = shape(p.batch, p.gamma)
    _kernel[(1,)](
        p.values, p.slots, rows(p.values), p.scale, p.bias, p.offset, rows(p.offset), p.survival_in,
        p.history, p.history_slots, rows(p.history), p.fresh, p.generation, p.expected,
        p.budget, p.budget_scalar, p.step_ns, rows(p.step_ns), p.base_ns, p.base_scalar,
        p.caps, p.min_verify_len, p.max_verify_len, p.least, p.max_rows, p.min_gain_ppm,
        p.tiers, rows(p.tiers), p.fill_tier, p.batch, p.gamma,
        p.survival, p.calibrated, p.verify_lens, p.cu_seqlens, p.stats, p.tier_tau,
        IS_LOGITS=p.is_logits, FIRST_DROP=p.search == FIRST_DROP, GIVEN=p.given, B=b, K=k,
        num_warps=warps(p, b * k), **EXACT,
    )  # fmt: skip
