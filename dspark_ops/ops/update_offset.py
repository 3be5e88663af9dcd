"""`update_offset`: a request's logit offset learns from its accepted and rejected drafts (DESIGN 3.10)."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.update_offset import update_offset as reference

LARGEST = 1e6


def check_learning(
    confidence: Tensor,
    slots: Tensor | None,
    decay: float,
    eta: float,
    limit: float,
    offset: Tensor,
    batch: int,
    gamma: int,
    device: torch.device,
) -> None:
    """The checks on the arguments that say what is learnt, from what and how fast."""
    _checks.tensor("confidence", confidence, torch.float32, [batch, gamma], device)
    _checks.optional("slots", slots, _checks.INDEX_DTYPES, [batch], device)
    _checks.number("decay", decay, 0.0, 1.0)
    _checks.number("eta", eta, 0.0, LARGEST)
    _checks.number("limit", limit, 0.0, LARGEST)
    _checks.output("offset", offset, torch.float32, [batch if slots is None else "slots"], device)
    if slots is not None and _checks.values_known(slots):
        inside = slots[(slots >= 0) & (slots < offset.shape[0])]
        if inside.unique().numel() != inside.numel():
            raise ValueError(f"slots: expected distinct slots, got {slots.tolist()}")


def _check(
    confidence: Tensor,
    correct_len: Tensor,
    verify_lens: Tensor,
    slots: Tensor | None,
    decay: float,
    eta: float,
    limit: float,
    offset: Tensor,
) -> None:
    _checks.tensor("confidence", confidence, torch.float32, ["B", "γ"])
    batch, gamma = confidence.shape
    device = confidence.device
    _checks.verify_width(batch, gamma)
    _checks.tensor("correct_len", correct_len, torch.int32, [batch], device)
    _checks.tensor("verify_lens", verify_lens, torch.int32, [batch], device)
    check_learning(confidence, slots, decay, eta, limit, offset, batch, gamma, device)


_op = operator(
    "update_offset(Tensor confidence, Tensor correct_len, Tensor verify_lens, Tensor? slots, "
    "float decay, float eta, float limit, Tensor(a!) offset) -> ()",
    reference,
    _check,
)


def update_offset(
    offset: Tensor,
    confidence: Tensor,
    correct_len: Tensor,
    verify_lens: Tensor,
    *,
    slots: Tensor | None = None,
    decay: float = 1.0,
    eta: float = 0.1,
    limit: float = 4.0,
) -> Tensor:
    """Move each request's logit offset towards what its last step showed, in place.

    Request r observed its drafts ``k < n``, ``n = min(correct + 1, l - 1)``: ``y_k = 1`` for ``k < correct``, else 0.
    Then ``offset <- clamp(fl(fl(decay * offset) + fl(eta * sum_{k<n} (y_k - c_k))), -limit, limit)``, all in float32,
    summed left to right, without fused multiply-add; decay, eta and limit are rounded to float32 first. The offset is
    what calibration adds to the logits of the next step. It uses only the past, so plans stay lossless. A request with
    l = 0 keeps its offset; one with l = 1 observed nothing and only decays. A new request starts at 0, which the caller
    writes.

    `accept_greedy` and `finalize_accept` do the same inside their own launch when they are given `offset`.

    Args:
        offset: float32 [B], or [slots] with `slots`; contiguous, updated in place. NaN reads as 0.
        confidence: c, float32 [B, γ]: the confidences the step's plan used, offset included. NaN counts as 0, the rest
            is clamped to [0, 1].
        correct_len: int32 [B], accepted drafts; clamped to [0, γ].
        verify_lens: l, int32 [B], rows the step verified, root included; clamped to [0, γ + 1].
        slots: int32 or int64 [B], the element of `offset` that belongs to each request. Slots must be distinct: where
            two requests name one slot, its value is one of several (memory stays safe). A slot out of range is skipped.
        decay: in [0, 1]; 1 never forgets.
        eta: learning rate in logits per unit of confidence error, in [0, 1e6].
        limit: bound of the offset in logits, in [0, 1e6].

    Returns:
        `offset`.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Graph capture: every tensor may change on replay; decay, eta and limit are baked in.

    Source: this project; online logistic calibration with one bias per request.
    """
    _op(confidence, correct_len, verify_lens, slots, decay, eta, limit, offset)
    return offset
