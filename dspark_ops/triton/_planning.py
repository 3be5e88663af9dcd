"""Device code: candidates, their keys, the cut, the lengths, the stats (csrc/common/order.h has the same arithmetic).

Keys alone are ordered, without an index: bits of the survival less those of 2^-20, 28 bits, 0 for no candidate. A cut
is a key and the number of its ties that are admitted. Counts fit int32 (B·N <= 2^18); only Q43 sums are int64.
"""

from __future__ import annotations

import triton
import triton.language as tl

Q_ONE = tl.constexpr(1 << 43)  # survival 1.0
MAX_STEP_NS = tl.constexpr((1 << 31) - 1)
MAX_BASE_NS = tl.constexpr(1 << 33)
KEY_BASE = tl.constexpr(0x357FFFFF)  # bits of 2^-20, less one
TOP_KEY = tl.constexpr((1 << 28) - 1)  # above every key
FIELD = tl.constexpr(21)  # three counts to 2^18 share an int64
FIELD_MASK = tl.constexpr((1 << 21) - 1)
TIERS = tl.constexpr(128)  # tiers looked at together


@triton.jit
def q43(bits):
    """floor(s * 2^43) from the bits of s in [0, 1]: shifts, since some GPUs convert to int64 by multiply-adds."""
    shift = (bits >> 23) - 107
    significand = ((bits & 0x7FFFFF) | 0x800000).to(tl.int64)
    left, right = tl.maximum(shift, 0), tl.minimum(tl.maximum(-shift, 0), 63)
    return (significand << left) >> right


@triton.jit
def key_q43(key):
    """Q43 of a key, which stands for at least 2^-20; 0 for no candidate."""
    bits = key + KEY_BASE
    shift = tl.minimum(tl.maximum((bits >> 23) - 107, 0), 20)  # out of range only for what is not used
    return tl.where(key > 0, ((bits & 0x7FFFFF) | 0x800000).to(tl.int64) << shift, 0)


@triton.jit
def bounds(caps, r, inside, min_verify_len, max_verify_len):
    """cap_r and floor_r; 0 for a request that is not there."""
    cap = tl.zeros_like(r) + max_verify_len
    if caps is not None:
        cap = tl.minimum(tl.maximum(tl.load(caps + r, mask=inside, other=0), 0), max_verify_len)
    cap = tl.where(inside, cap, 0)
    return cap, tl.minimum(tl.maximum(min_verify_len, 1), cap)


@triton.jit
def candidate_keys(s, k, cap, floor, least):
    """Keys of the candidates, 0 elsewhere. cap <= N keeps a column past γ out."""
    key = s.to(tl.int32, bitcast=True) - KEY_BASE
    return tl.where((floor <= k + 1) & (k + 1 < cap) & (key >= least), key, 0)


@triton.jit
def mandatory_tau(s, k, floor):
    """Q43 of the drafts that are always verified."""
    return tl.where(k < floor - 1, q43(s.to(tl.int32, bitcast=True)), 0)


@triton.jit
def most_budget(min_rows, cap_rows, max_rows):
    """The largest budget that caps and max_rows (below 0: none) allow."""
    most = cap_rows - min_rows
    return tl.where(max_rows < 0, most, tl.maximum(tl.minimum(most, max_rows - min_rows), 0))


@triton.jit
def load_base(base_ns, base_scalar):
    """The base of T, clamped so that adding an int32 to it cannot overflow."""
    base = base_ns.to(tl.int64)
    if base_scalar is not None:
        base = tl.load(base_scalar)
    return tl.minimum(tl.maximum(base, -MAX_BASE_NS), MAX_BASE_NS)


@triton.jit
def step_time(step_ns, length, base, rows):
    """T(rows) in ns: index clamped into the row, time into [1, 2^31 - 1]."""
    at = tl.minimum(tl.maximum(rows, 0), length - 1)
    t = base + tl.load(step_ns + at).to(tl.int64)
    return tl.minimum(tl.maximum(t, 1), MAX_STEP_NS).to(tl.int32)


@triton.jit
def given_budget(budget, budget_scalar, most):
    """The budget that came as an int or a scalar, bounded."""
    wanted = budget.to(tl.int64)
    if budget_scalar is not None:
        wanted = tl.load(budget_scalar)
    return tl.minimum(tl.maximum(wanted, 0), most.to(tl.int64)).to(tl.int32)


@triton.jit
def execute(budget, min_rows, most, count, tiers, tier_count, fill):
    """Smallest tier >= M0 + budget, or -1; and how many candidates are admitted, with the tier filled if asked."""
    tier = tl.full([], -1, tl.int32)
    filled = budget
    if tiers is not None:
        none: tl.constexpr = 1 << 40
        smallest = tl.full([], none, tl.int64)
        for start in range(0, tier_count, TIERS):
            i = start + tl.arange(0, TIERS)
            rows = tl.load(tiers + i, mask=i < tier_count, other=-1).to(tl.int64)
            fits = (i < tier_count) & (rows >= min_rows + budget)
            smallest = tl.minimum(smallest, tl.min(tl.where(fits, rows, none), axis=0))
        found = smallest < none
        tier = tl.where(found, smallest, -1).to(tl.int32)
        room = tl.minimum(smallest - min_rows, most.to(tl.int64)).to(tl.int32)
        filled = tl.where(found & (fill != 0), tl.maximum(budget, room), budget)
    return tier, tl.minimum(filled, count)


@triton.jit
def select_key(key, admitted):
    """The largest v that at least `admitted` keys reach: TOP_KEY for none, the least key for all.

    A search for two bits at a time, whose three counts share one sum: 14 reductions, where sorting the keys again would
    take 66 exchanges for 2048 of them.
    """
    v = tl.full([], 0, tl.int32)
    for step in range(14):
        shift = 26 - 2 * step
        one = (key >= v + (1 << shift)).to(tl.int64)
        two = (key >= v + (2 << shift)).to(tl.int64)
        three = (key >= v + (3 << shift)).to(tl.int64)
        sums = tl.sum(tl.ravel(one + (two << FIELD) + (three << 2 * FIELD)), axis=0)
        first, second, third = sums & FIELD_MASK, (sums >> FIELD) & FIELD_MASK, sums >> 2 * FIELD
        reached = (first >= admitted).to(tl.int32) + (second >= admitted).to(tl.int32)
        reached += (third >= admitted).to(tl.int32)
        v += reached << shift
    return v


@triton.jit
def lengths(key, k, floor, v, ties):
    """Lengths [B]: floor, keys above v, and of those equal to v `ties`, by k and then by request.

    The counts of ties per k tell the one k where they end; only there does the order of the requests matter.
    key is [B, K], k [K], floor [B].
    """
    equal = key == v
    per_k = tl.sum(equal.to(tl.int32), axis=0)
    last = tl.sum((tl.cumsum(per_k, axis=0) <= ties).to(tl.int32), axis=0)
    left = ties - tl.sum(tl.where(k < last, per_k, 0), axis=0)
    whole = (key > v) | (equal & (k < last)[None, :])
    here = tl.sum((equal & (k == last)[None, :]).to(tl.int32), axis=1)
    admitted = tl.where(tl.cumsum(here, axis=0) <= left, here, 0)
    return floor + tl.sum(whole.to(tl.int32), axis=1) + admitted


@triton.jit
def write_stats(stats, budget, rows, tier, tau, step_ns, length, base):
    tl.store(stats, budget.to(tl.int64))
    tl.store(stats + 1, rows.to(tl.int64))
    tl.store(stats + 2, tier.to(tl.int64))
    tl.store(stats + 3, tau)
    t = tl.full([], 0, tl.int32)
    if step_ns is not None:
        t = step_time(step_ns, length, base, rows)
    tl.store(stats + 4, t.to(tl.int64))
