"""Specification of `update_offset`: a request's logit offset learns from which of its drafts were accepted."""

from __future__ import annotations

import torch
from torch import Tensor


def update_offset(
    confidence: Tensor,
    correct_len: Tensor,
    verify_lens: Tensor,
    slots: Tensor | None,
    decay: float,
    eta: float,
    limit: float,
    offset: Tensor,
) -> None:
    """offset <- clamp(fl(fl(decay * offset) + fl(eta * sum of (y_k - c_k) over observed k)), +-limit), in float32."""
    batch, gamma = confidence.shape
    device = confidence.device
    decay32, eta32, limit32 = (torch.full((), x, dtype=torch.float32, device=device) for x in (decay, eta, limit))
    verify_len = verify_lens.long().clamp(0, gamma + 1)
    correct = correct_len.long().clamp(0, gamma)
    observed = torch.minimum(correct + 1, verify_len - 1)
    zero = torch.zeros_like(confidence)
    c = torch.where(confidence > 0, confidence.clamp(max=1), zero)  # NaN > 0 is false: NaN reads as 0
    error = torch.zeros(batch, dtype=torch.float32, device=device)
    for k in range(gamma):
        accepted = (k < correct).float()
        error = torch.where(k < observed, error + (accepted - c[:, k]), error)

    num_slots = offset.shape[0]
    slot = torch.arange(batch, device=device) if slots is None else slots.long()
    known = (slot >= 0) & (slot < num_slots)
    # One spare element at the end takes what an out-of-range slot reads and writes.
    slot = torch.where(known, slot, num_slots)
    extended = torch.cat([offset, offset.new_zeros(1)])
    before = extended[slot]
    decayed = decay32 * before
    decayed = torch.where(decayed.isnan(), 0.0, decayed)
    after = decayed + eta32 * error
    after = torch.where(after > limit32, limit32, torch.where(after < -limit32, -limit32, after))
    extended.scatter_(0, slot, torch.where(verify_len > 0, after, before))
    offset.copy_(extended[:num_slots])
