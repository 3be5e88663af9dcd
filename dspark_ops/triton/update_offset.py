"""`update_offset` in Triton: one launch, one thread per request; bound by its launch."""

from __future__ import annotations

import triton.language as tl
from torch import Tensor

from ._launch import EXACT, cdiv, contiguous, jit
from ._learning import learn

BLOCK = 128


@jit
def _update_offset_kernel(
    confidence, correct_len, verify_lens, slots, offset, batch, gamma, num_slots,
    decay: tl.float32, eta: tl.float32, limit: tl.float32, BLOCK: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = r < batch
    correct = tl.load(correct_len + r, mask=inside, other=0)
    correct = tl.minimum(tl.maximum(correct, 0), gamma)
    verify_len = tl.load(verify_lens + r, mask=inside, other=0)
    verify_len = tl.minimum(tl.maximum(verify_len, 0), gamma + 1)
    learn(confidence, slots, offset, r, correct, verify_len, gamma, num_slots, decay, eta, limit)


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
    batch, gamma = confidence.shape
    tensors = (contiguous(t) for t in (confidence, correct_len, verify_lens, slots))
    _update_offset_kernel[(cdiv(batch, BLOCK),)](
        *tensors, offset, batch, gamma, offset.shape[0], decay, eta, limit, BLOCK=BLOCK, **EXACT
    )
