"""How an offset learns (DESIGN 3.10), in Triton: `update_offset`, and the same inside the acceptance launch.

The sum goes strictly left to right, so a request's drafts are one loop; requests are the parallel axis. Launch with
`EXACT`: a product contracted into a fused multiply-add would round differently from the other back ends.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def learn(confidence, slots, offset, r, correct, verify_len, gamma, num_slots, decay, eta, limit):
    """Update the offsets of requests r, a block of int64; where verify_len is 0 nothing changes."""
    observed = tl.minimum(correct + 1, verify_len - 1)
    error = tl.zeros_like(r).to(tl.float32)
    for k in range(gamma):
        seen = k < observed
        c = tl.load(confidence + r * gamma + k, mask=seen, other=0.0)
        c = tl.where(c > 0.0, tl.minimum(c, 1.0), 0.0)  # NaN > 0 is false: NaN reads as 0
        error = tl.where(seen, error + (tl.where(k < correct, 1.0, 0.0) - c), error)
    slot = r
    active = verify_len > 0
    if slots is not None:
        slot = tl.load(slots + r, mask=active, other=-1).to(tl.int64)
    active = active & (slot >= 0) & (slot < num_slots)
    after = decay * tl.load(offset + slot, mask=active, other=0.0)
    after = tl.where(after == after, after, 0.0)  # a NaN offset, or 0 times an infinite one
    after += eta * error
    # A product, since Triton's unary minus is 0 - limit: -0.0 must come out where the limit is 0.
    lowest = (tl.zeros_like(error) + limit) * -1.0
    after = tl.where(after > limit, limit, tl.where(after < lowest, lowest, after))
    tl.store(offset + slot, after, mask=active)
