"""Device code: the exact search for a budget in sorted keys (csrc/common/order.h has the same arithmetic).

A chunk of the sorted keys gives tau(b) by a scan and T(b) by a load. A global search is an exact reduction of
(tau, T, b) by ratio, then by the smaller b: a total order, so any tree of comparisons finds the same one. A first drop
needs no running maximum: it is the smallest b at which a local rule holds. A first pass in doubles is not worth it
here: the exact comparison is four multiplications, and there are a few per thread.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ._planning import key_q43, step_time

LOW = tl.constexpr(0xFFFFFFFF)
NEVER = tl.constexpr(1 << 30)  # above every budget


@triton.jit
def mul96(tau, t):
    """tau * t as hi * 2^32 + lo, for tau < 2^62 and t < 2^31."""
    t = t.to(tl.int64)
    low = (tau & LOW) * t
    return (tau >> 32) * t + (low >> 32), low & LOW


@triton.jit
def _compare(tau_a, t_a, tau_b, t_b):
    """Whether tau_a / t_a is greater than tau_b / t_b, and whether they are equal."""
    hi_a, lo_a = mul96(tau_a, t_b)
    hi_b, lo_b = mul96(tau_b, t_a)
    same = hi_a == hi_b
    return (hi_a > hi_b) | (same & (lo_a > lo_b)), same & (lo_a == lo_b)


@triton.jit
def _better(tau_a, t_a, b_a, tau_b, t_b, b_b):
    greater, equal = _compare(tau_a, t_a, tau_b, t_b)
    a = greater | (equal & (b_a < b_b))
    return tl.where(a, tau_a, tau_b), tl.where(a, t_a, t_b), tl.where(a, b_a, b_b)


@triton.jit
def best_ratio(tau, t, b):
    """(tau, T, b) of the greatest tau / T, the smallest b among equals."""
    return tl.reduce((tau, t, b), 0, _better)


@triton.jit
def gain_exceeds(tau_a, t_a, tau_b, t_b, ppm):
    """(tau_a / t_a) * 10^6 > (tau_b / t_b) * (10^6 + ppm): products of up to 114 bits, in limbs of 32."""
    hi_a, lo_a = mul96(tau_a, t_b)
    hi_b, lo_b = mul96(tau_b, t_a)
    a0 = lo_a * 1000000
    b0 = lo_b * (1000000 + ppm)
    a1 = (hi_a & LOW) * 1000000 + (a0 >> 32)
    b1 = (hi_b & LOW) * (1000000 + ppm) + (b0 >> 32)
    a2 = (hi_a >> 32) * 1000000 + (a1 >> 32)
    b2 = (hi_b >> 32) * (1000000 + ppm) + (b1 >> 32)
    below = ((a1 & LOW) > (b1 & LOW)) | (((a1 & LOW) == (b1 & LOW)) & ((a0 & LOW) > (b0 & LOW)))
    return (a2 > b2) | ((a2 == b2) & below)


@triton.jit
def chunk_tau(keys, tau_before):
    """q and tau(b) of a chunk of sorted keys, going on from the tau before it."""
    q = key_q43(keys)
    return q, tau_before + tl.cumsum(q, axis=0)


@triton.jit
def chunk_best(tau, b, min_rows, limit, step_ns, length, base):
    """(tau, T, b) of the best b of a chunk; a chunk past the limit has ratio 0."""
    allowed = b <= limit
    t = tl.where(allowed, step_time(step_ns, length, base, min_rows + b), 1)
    return best_ratio(tl.where(allowed, tau, 0), t, b)


@triton.jit
def chunk_stop(q, tau, b, min_rows, limit, step_ns, length, base):
    """The first b with q_b * T(b-1) <= tau(b-1) * (T(b) - T(b-1)), or NEVER."""
    allowed = b <= limit
    before = step_time(step_ns, length, base, min_rows + b - 1)
    # The gain ahead of the second load: the other way round 4096 keys spill.
    gain_hi, gain_lo = mul96(q, before)
    rise = step_time(step_ns, length, base, min_rows + b) - before
    loss_hi, loss_lo = mul96(tau - q, tl.maximum(rise, 0))
    pays = (gain_hi > loss_hi) | ((gain_hi == loss_hi) & (gain_lo > loss_lo))
    return tl.min(tl.where(allowed & (rise > 0) & (pays == 0), b, NEVER), axis=0)


@triton.jit
def settle(tau, t, b, tau0, t0, tau_full, t_full, limit, ppm):
    """The best budget against b = 0, which wins a tie, and against the full budget, which must be beaten by `ppm`."""
    first, equal = _compare(tau0, t0, tau, t)
    first = first | equal
    tau = tl.where(first, tau0, tau)
    t = tl.where(first, t0, t)
    budget = tl.where(first, 0, b)
    keep = (ppm > 0) & (gain_exceeds(tau, t, tau_full, t_full, ppm.to(tl.int64)) == 0)
    return tl.where(keep, limit, budget)


@triton.jit
def _tier_budget(tiers, i, min_rows, most, count):
    """The budget that fills tier i, and the tier's rows."""
    rows = tl.load(tiers + i).to(tl.int64)
    most = tl.minimum(most, count).to(tl.int64)
    return tl.minimum(tl.maximum(rows - min_rows, 0), most).to(tl.int32), rows


@triton.jit
def write_tier_tau(tier_tau, tiers, tier_count, tau, b, min_rows, most, count):
    """tau with the rows filled to each tier, by the thread that holds the tau of that b: no reduction, no barrier."""
    for i in range(tier_count):
        budget, _ = _tier_budget(tiers, i, min_rows, most, count)
        tl.store(tier_tau + i + tl.zeros_like(b), tau, mask=b == budget)


@triton.jit
def write_tier_base(tier_tau, tiers, tier_count, tau0, min_rows, most, count):
    """The same for b = 0, which no sorted key stands for; and 1 where the tier is under M0."""
    for i in range(tier_count):
        budget, rows = _tier_budget(tiers, i, min_rows, most, count)
        tl.store(tier_tau + i, tau0, mask=budget == 0)
        tl.store(tier_tau + tier_count + i, (rows < min_rows).to(tl.int64))
