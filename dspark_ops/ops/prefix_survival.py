"""`prefix_survival`: confidences or calibrated logits to survival (DESIGN 3.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.prefix_survival import prefix_survival as reference
from . import _planning


def _check(
    values: Tensor, is_logits: bool, scale: Tensor | None, bias: Tensor | None, offset: Tensor | None,
    slots: Tensor | None, offset_slots: Tensor | None, optimistic: bool, fresh: Tensor | None,
    generation: Tensor | None, expected: Tensor | None, survival: Tensor, calibrated: Tensor | None,
) -> None:  # fmt: skip
    _checks.tensor("logits" if is_logits else "confidence", values, _checks.FLOAT_DTYPES, ["rows", "γ"])
    (rows, gamma), device = values.shape, values.device
    if slots is not None:
        _checks.rank("slots", slots, ["B"])
    batch = rows if slots is None else slots.shape[0]
    _checks.verify_width(batch, gamma)
    _checks.optional("slots", slots, _checks.INDEX_DTYPES, [batch], device)
    _checks.optional("offset_slots", offset_slots, _checks.INDEX_DTYPES, [batch], device)
    offset_rows = batch if offset_slots is None else None
    _planning.check_calibration(is_logits, gamma, offset_rows, device, scale, bias, offset)
    _planning.check_freshness(batch, rows, device, fresh, generation, expected)
    _checks.output("out", survival, torch.float32, [batch, gamma], device)
    _checks.optional_output("out_confidence", calibrated, torch.float32, [batch, gamma], device)


_op = operator(
    "prefix_survival(Tensor values, bool is_logits, Tensor? scale, Tensor? bias, Tensor? offset, Tensor? slots, "
    "Tensor? offset_slots, bool optimistic, Tensor? fresh, Tensor? generation, Tensor? expected, "
    "Tensor(a!) survival, Tensor(b!)? calibrated) -> ()",
    reference,
    _check,
)


def prefix_survival(
    confidence: Tensor | None = None,
    *,
    logits: Tensor | None = None,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    offset: Tensor | None = None,
    slots: Tensor | None = None,
    optimistic: bool = False,
    fresh: Tensor | None = None,
    generation: Tensor | None = None,
    expected: Tensor | None = None,
    out: Tensor | None = None,
    out_confidence: Tensor | None = None,
) -> Tensor:
    """Probability that the accepted prefix reaches each draft token: ``s[r, k] = c[r, 0] * ... * c[r, k]``.

    The product is taken in float32, strictly left to right, each multiply rounded to nearest; a product below 2^-100
    becomes +0. The bits are the same on every back end for the same c. (``torch.cumprod`` on CPU accumulates in
    double and is not this.) NaN counts as 0, values are clamped to [0, 1].

    Args:
        confidence: c, float32, bfloat16 or float16 [B, γ], or [slots, γ] with `slots`. Give this or `logits`.
        logits: z, same shapes and dtypes; ``c = sigmoid(scale_k * z + bias_k + offset_r)``, each operation rounded to
            float32; back ends may differ by 2 ulp in c. Values of c below 2^-100 become +0.
        scale: float32 [γ]; 1 / T_k for sequential temperature scaling. Default 1.
        bias: float32 [γ]. Default 0.
        offset: float32 [B], or [slots] with `slots`. A slot out of range reads offset 0. Default 0.
        slots: int32 or int64 [B], the row of each request. A slot out of range reads as confidence 0.
        optimistic: rows that are not there (a slot out of range) count as survival 1 instead; implied by the next two.
        fresh: bool [B]; a row that is not fresh counts as survival 1 everywhere.
        generation, expected: int64 [rows of the input], int64 [B]; request r is fresh iff
            ``generation[row of r] == expected[r] >= 1``.
        out: float32 [B, γ] to write into.
        out_confidence: float32 [B, γ]; receives the calibrated c, as `update_offset` wants it.

    Returns:
        float32 [B, γ], never rising along k.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or combination, naming the argument.

    Source: DSpark (arXiv 2607.05147), section on confidence-scheduled verification.
    """
    values, is_logits = _planning.resolve_input(confidence, logits, slots)
    optimistic = optimistic or fresh is not None or generation is not None
    if out is None:
        batch = (values if slots is None else slots).shape[0]
        out = values.new_empty((batch, values.shape[-1]), dtype=torch.float32)
    offset_slots = None if offset is None else slots
    args = (
        values, is_logits, scale, bias, offset, slots, offset_slots, optimistic, fresh, generation, expected,
    )  # fmt: skip
    _op(*args, out, out_confidence)
    return out
