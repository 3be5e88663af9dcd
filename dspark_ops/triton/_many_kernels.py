"""Kernels of a plan that does not fit one program; `_many_programs` says how they follow each other.

Keys lie k-major ([γ, B] flat), so that the flat order is the order of ties (k, then request) and a program that owns
requests reads and writes them side by side. Partial results go to one place per program and are summed by the readers:
integers, so the result does not depend on who sums when; no atomics, and nothing to be zeroed.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ._launch import jit
from ._planning import (
    Q_ONE,
    TOP_KEY,
    bounds,
    candidate_keys,
    execute,
    given_budget,
    key_q43,
    load_base,
    mandatory_tau,
    most_budget,
    step_time,
    write_stats,
)
from ._search import NEVER, best_ratio, chunk_best, chunk_stop, chunk_tau, settle, write_tier_base, write_tier_tau
from ._survival import running, unit_interval

CHUNK = 2048  # keys of a program
CHUNKS = 128  # programs at the limit: B·γ < 2^18
PROBES = 512  # PROBES * PROBES = 2^18


@triton.jit
def _sum(partials, n):
    """Sum of n int64 partial results."""
    total = tl.full([], 0, tl.int64)
    for start in range(0, n, 256):
        i = start + tl.arange(0, 256)
        total += tl.sum(tl.load(partials + i, mask=i < n, other=0), axis=0)
    return total


@triton.jit
def _totals(totals, blocks, max_rows):
    """tau0, M0, the most a budget may be, and the number of candidates."""
    min_rows = _sum(totals + blocks, blocks).to(tl.int32)
    cap_rows = _sum(totals + 2 * blocks, blocks).to(tl.int32)
    count = _sum(totals + 3 * blocks, blocks).to(tl.int32)
    return _sum(totals, blocks), min_rows, most_budget(min_rows, cap_rows, max_rows), count


@jit
def keys_kernel(
    survival, caps, min_verify_len, max_verify_len, least, batch, gamma, keys, totals,
    B: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Keys [γ, B] of survivals [B, γ], and totals [4, programs]: tau0, M0, Σ cap, candidates."""
    r = tl.program_id(0) * B + tl.arange(0, B)
    inside = r < batch
    columns = tl.arange(0, K)
    cap, floor = bounds(caps, r, inside, min_verify_len, max_verify_len)
    tau0 = tl.sum((cap > 0).to(tl.int64), axis=0) * Q_ONE
    count = tl.full([], 0, tl.int32)
    least_yet = tl.full([B, 1], 1.0, tl.float32)
    for start in range(0, gamma, K):
        k = start + columns
        written = inside[:, None] & (k < gamma)[None, :]
        at = r.to(tl.int64)[:, None] * gamma + k[None, :]
        c = unit_interval(tl.load(survival + at, mask=written, other=0.0))
        s, least_yet = running(c, columns[None, :], K, least_yet, K, MINIMUM=True)
        tau0 += tl.sum(tl.ravel(mandatory_tau(s, k[None, :], floor[:, None])), axis=0)
        key = candidate_keys(s, k[None, :], cap[:, None], floor[:, None], least)
        count += tl.sum(tl.ravel((key > 0).to(tl.int32)), axis=0)
        tl.store(keys + k.to(tl.int64)[None, :] * batch + r[:, None], key, mask=written)
    at = totals + tl.program_id(0)
    blocks = tl.num_programs(0)
    tl.store(at, tau0)
    tl.store(at + blocks, tl.sum(floor, axis=0).to(tl.int64))
    tl.store(at + 2 * blocks, tl.sum(cap, axis=0).to(tl.int64))
    tl.store(at + 3 * blocks, count.to(tl.int64))


@jit
def sums_kernel(ordered, n, chunk_q, CHUNK: tl.constexpr):
    """Σ q of each chunk of each order [S, n]."""
    i = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    row = tl.program_id(1).to(tl.int64)
    q = key_q43(tl.load(ordered + row * n + i, mask=i < n, other=0))
    tl.store(chunk_q + row * tl.num_programs(0) + tl.program_id(0), tl.sum(q, axis=0))


@jit
def search_kernel(
    ordered, n, chunk_q, totals, blocks, step_ns, length, base_ns: tl.int64, base_scalar, max_rows, tiers, tier_count,
    chunk_tau_best, chunk_t_best, chunk_b_best, chunk_full, tier_tau,
    FIRST_DROP: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Each chunk's best (tau, T, b), or first stop in place of b; Σ q up to the limit; tau of the tiers it holds."""
    chunk = tl.program_id(0)
    tau0, min_rows, most, count = _totals(totals, blocks, max_rows)
    limit = tl.minimum(count, most)
    base = load_base(base_ns, base_scalar)
    before = tl.arange(0, CHUNKS)
    earlier = tl.sum(tl.load(chunk_q + before, mask=before < chunk, other=0), axis=0)
    i = chunk * CHUNK + tl.arange(0, CHUNK)
    q, tau = chunk_tau(tl.load(ordered + i, mask=i < n, other=0), tau0 + earlier)
    b = i + 1
    if FIRST_DROP:
        tl.store(chunk_b_best + chunk, chunk_stop(q, tau, b, min_rows, limit, step_ns, length, base))
    else:
        best_tau, best_t, best_b = chunk_best(tau, b, min_rows, limit, step_ns, length, base)
        tl.store(chunk_tau_best + chunk, best_tau)
        tl.store(chunk_t_best + chunk, best_t)
        tl.store(chunk_b_best + chunk, best_b)
        tl.store(chunk_full + chunk, tl.sum(tl.where(b <= limit, q, 0), axis=0))
    if tier_tau is not None:
        write_tier_tau(tier_tau, tiers, tier_count, tau, b, min_rows, most, count)
        if chunk == 0:
            write_tier_base(tier_tau, tiers, tier_count, tau0, min_rows, most, count)


@triton.jit
def _found(
    totals, blocks, chunks, step_ns, length, base, max_rows, ppm,
    chunk_tau_best, chunk_t_best, chunk_b_best, chunk_full, FIRST_DROP: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """The budget of the chunks' results."""
    tau0, min_rows, most, count = _totals(totals, blocks, max_rows)
    limit = tl.minimum(count, most)
    i = tl.arange(0, CHUNKS)
    b = tl.load(chunk_b_best + i, mask=i < chunks, other=NEVER)
    if FIRST_DROP:
        stop = tl.min(b, axis=0)
        budget = tl.where(stop == NEVER, limit, stop - 1)
    else:
        best_tau, best_t, best_b = best_ratio(
            tl.load(chunk_tau_best + i, mask=i < chunks, other=0),
            tl.load(chunk_t_best + i, mask=i < chunks, other=1), b,
        )  # fmt: skip
        t0 = step_time(step_ns, length, base, min_rows)
        t_full = step_time(step_ns, length, base, min_rows + limit)
        tau_full = tau0 + _sum(chunk_full, chunks)
        budget = settle(best_tau, best_t, best_b, tau0, t0, tau_full, t_full, limit, ppm)
    return budget


@triton.jit
def _above(ordered, n, v, PROBES: tl.constexpr):
    """How many of the sorted keys are greater than v: probes find the stretch, a look at it the place."""
    i = tl.arange(0, PROBES)
    probes = tl.load(ordered + i * PROBES, mask=i * PROBES < n, other=-1)
    start = (tl.maximum(tl.sum((probes > v).to(tl.int32), axis=0), 1) - 1) * PROBES
    inside = tl.load(ordered + start + i, mask=start + i < n, other=-1)
    return start + tl.sum((inside > v).to(tl.int32), axis=0)


@jit
def decide_kernel(
    ordered, n, chunk_q, chunks, totals, search_totals, blocks, budget, budget_scalar, step_ns, length,
    base_ns: tl.int64, base_scalar, max_rows, ppm, tiers, tier_count, fill,
    chunk_tau_best, chunk_t_best, chunk_b_best, chunk_full, cut, stats,
    GIVEN: tl.constexpr, FIRST_DROP: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr, PROBES: tl.constexpr,
):  # fmt: skip
    """Stats, and the cut: its key and how many of its ties are admitted."""
    tau0, min_rows, most, count = _totals(totals, blocks, max_rows)
    base = load_base(base_ns, base_scalar)
    if GIVEN:
        planned = given_budget(budget, budget_scalar, most)
    else:
        planned = _found(
            search_totals, blocks, chunks, step_ns, length, base, max_rows, ppm,
            chunk_tau_best, chunk_t_best, chunk_b_best, chunk_full, FIRST_DROP, CHUNKS,
        )  # fmt: skip
    tier, admitted = execute(planned, min_rows, most, count, tiers, tier_count, fill)
    v = tl.load(ordered + admitted - 1, mask=admitted > 0, other=TOP_KEY)
    tl.store(cut, v)
    tl.store(cut + 1, admitted - _above(ordered, n, v, PROBES))

    last = admitted // CHUNK  # every chunk before it is admitted as a whole
    tau = tau0 + _sum(chunk_q, last)
    for start in range(last * CHUNK, admitted, PROBES):
        i = start + tl.arange(0, PROBES)
        tau += tl.sum(key_q43(tl.load(ordered + i, mask=i < admitted, other=0)), axis=0)
    write_stats(stats, planned, min_rows + admitted, tier, tau, step_ns, length, base)


@jit
def ties_kernel(keys, n, cut, chunk_ties, CHUNK: tl.constexpr):
    """How many keys of each chunk, in the order of ties, are equal to the cut."""
    i = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    equal = tl.load(keys + i, mask=i < n, other=-1) == tl.load(cut)
    tl.store(chunk_ties + tl.program_id(0), tl.sum(equal.to(tl.int32), axis=0))


@triton.jit
def _tie_end(keys, n, v, ties, chunk_ties, chunks, CHUNK: tl.constexpr, CHUNKS: tl.constexpr):
    """The flat place before which ties are admitted: behind the last of them."""
    c = tl.arange(0, CHUNKS)
    counts = tl.load(chunk_ties + c, mask=c < chunks, other=0)
    whole = (tl.cumsum(counts, axis=0) < ties) & (c < chunks)
    chunk = tl.sum(whole.to(tl.int32), axis=0)
    left = ties - tl.sum(tl.where(whole, counts, 0), axis=0)
    i = chunk * CHUNK + tl.arange(0, CHUNK)
    equal = tl.load(keys + i, mask=i < n, other=-1) == v
    earlier = tl.sum((tl.cumsum(equal.to(tl.int32), axis=0) < left).to(tl.int32), axis=0)
    return tl.where(ties > 0, chunk * CHUNK + earlier + 1, 0)


@jit
def lengths_kernel(
    keys, n, caps, min_verify_len, max_verify_len, batch, gamma, cut, chunk_ties, chunks, verify_lens, block_lens,
    B: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Lengths of a block of requests, and their sum; every program finds the end of the ties for itself."""
    v = tl.load(cut)
    end = _tie_end(keys, n, v, tl.load(cut + 1), chunk_ties, chunks, CHUNK, CHUNKS)
    r = tl.program_id(0) * B + tl.arange(0, B)
    inside = r < batch
    _, lens = bounds(caps, r, inside, min_verify_len, max_verify_len)
    for start in range(0, gamma, K):
        k = (start + tl.arange(0, K))[:, None]
        at = k * batch + r[None, :]
        key = tl.load(keys + at, mask=(k < gamma) & inside[None, :], other=-1)
        lens += tl.sum(((key > v) | ((key == v) & (at < end))).to(tl.int32), axis=0)
    tl.store(verify_lens + r, lens, mask=inside)
    tl.store(block_lens + tl.program_id(0), tl.sum(lens, axis=0).to(tl.int64))


@jit
def offsets_kernel(verify_lens, block_lens, batch, cu_seqlens, B: tl.constexpr):
    """cu_seqlens of a block of requests; the blocks are those of `lengths_kernel`."""
    r = tl.program_id(0) * B + tl.arange(0, B)
    lens = tl.load(verify_lens + r, mask=r < batch, other=0)
    before = _sum(block_lens, tl.program_id(0)).to(tl.int32)
    tl.store(cu_seqlens + 1 + r, before + tl.cumsum(lens, axis=0), mask=r < batch)
    tl.store(cu_seqlens, 0, mask=tl.program_id(0) == 0)
