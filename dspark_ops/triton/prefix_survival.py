"""`prefix_survival` in Triton: a block of requests per program, one launch; bound by its launch.

A row longer than a block's columns is walked block by block, its product carried along, so that γ has no limit and is
no constant of the compilation.
"""

from __future__ import annotations

import triton.language as tl
from torch import Tensor

from ._launch import EXACT, cdiv, contiguous, jit, padded
from ._survival import load_confidence, running

ELEMENTS, MAX_COLUMNS = 512, 8


@jit
def _kernel(
    values, slots, rows, scale, bias, offset, offset_slots, offset_rows, fresh, generation, expected,
    batch, gamma, survival, calibrated,
    IS_LOGITS: tl.constexpr, OPTIMISTIC: tl.constexpr, B: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    r = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    inside = r < batch
    columns = tl.arange(0, K)[None, :]
    prefix = tl.full([B, 1], 1.0, tl.float32)
    for start in range(0, gamma, K):
        k = start + columns
        c = load_confidence(
            values, slots, rows, scale, bias, offset, offset_slots, offset_rows, fresh, generation, expected,
            r, inside, k, gamma, IS_LOGITS, OPTIMISTIC,
        )  # fmt: skip
        s, prefix = running(c, columns, K, prefix, K, MINIMUM=False)
        at, written = r * gamma + k, inside & (k < gamma)
        tl.store(survival + at, s, mask=written)
        if calibrated is not None:
            tl.store(calibrated + at, c, mask=written)


def prefix_survival(
    values: Tensor, is_logits: bool, scale: Tensor | None, bias: Tensor | None, offset: Tensor | None,
    slots: Tensor | None, offset_slots: Tensor | None, optimistic: bool, fresh: Tensor | None,
    generation: Tensor | None, expected: Tensor | None, survival: Tensor, calibrated: Tensor | None,
) -> None:  # fmt: skip
    batch, gamma = survival.shape
    columns = min(padded(gamma, 2), MAX_COLUMNS)
    requests = ELEMENTS // columns
    _kernel[(cdiv(batch, requests),)](
        contiguous(values), contiguous(slots), values.shape[0], contiguous(scale), contiguous(bias),
        contiguous(offset), contiguous(offset_slots), 0 if offset is None else offset.shape[0],
        contiguous(fresh), contiguous(generation), contiguous(expected), batch, gamma, survival, calibrated,
        IS_LOGITS=is_logits, OPTIMISTIC=optimistic, B=requests, K=columns, num_warps=4, **EXACT,
    )  # fmt: skip
