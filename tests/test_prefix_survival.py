"""Survival: golden products, calibrated logits, slots and freshness."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import torch

import dspark_ops
import oracle
from dspark_ops.testing.planning import KINDS, confidences
from golden_data import load


def test_golden(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        for case in load("schedule_verify_lens"):
            want = torch.tensor(case["survival"])
            want[want < 2.0**-100] = 0  # the golden products are not flushed
            assert torch.equal(dspark_ops.prefix_survival(torch.tensor(case["confidence"])), want), case["kind"]


@pytest.mark.parametrize("kind", KINDS)
def test_product_is_left_to_right_in_float32(kind: str, backend: str) -> None:
    c = confidences(Random(1), 40, 15, kind)
    with dspark_ops.use_backend(backend):
        assert dspark_ops.prefix_survival(c).tolist() == oracle.survival(c.tolist())


def test_is_not_a_double_precision_cumprod(backend: str) -> None:
    c = torch.rand(200, 15, generator=torch.Generator().manual_seed(0))
    with dspark_ops.use_backend(backend):
        assert not torch.equal(dspark_ops.prefix_survival(c), c.cumprod(1))


def test_flush_to_zero_mode_cannot_matter(backend: str) -> None:
    c = torch.full((3, 15), 1e-4)
    c[1, 0], c[2] = 1e-40, 2.0**-10
    with dspark_ops.use_backend(backend):
        before = dspark_ops.prefix_survival(c)
        assert torch.set_flush_denormal(True)
        try:
            flushed = dspark_ops.prefix_survival(c)
        finally:
            torch.set_flush_denormal(False)
    assert torch.equal(before, flushed)
    assert before[1, 0] == 0 and before[2, 9] == 2.0**-100 and before[2, 10] == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_widened(dtype: torch.dtype, backend: str) -> None:
    every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype)[:, None]
    with dspark_ops.use_backend(backend):
        assert torch.equal(dspark_ops.prefix_survival(every), dspark_ops.prefix_survival(every.float()))


def ulps(a: torch.Tensor, b: torch.Tensor) -> int:
    return int((a.view(torch.int32).long() - b.view(torch.int32).long()).abs().max())


def test_logits(backend: str) -> None:
    """c within 2 ulp of exact (a double-precision sigmoid), and survival exactly the product of that c."""
    g = torch.Generator().manual_seed(3)
    z = torch.randn(5000, 7, generator=g) * 8
    z[0] = torch.tensor([float("nan"), float("inf"), -float("inf"), 88.8, -88.8, -69.0, -70.0])
    scale, bias = torch.rand(7, generator=g) + 0.2, torch.randn(7, generator=g)
    offset, slots = torch.randn(9000, generator=g), torch.randint(-2, 9002, (5000,), generator=g)
    rows = torch.zeros(9000, 7)
    inside = (slots >= 0) & (slots < 9000)
    rows[slots[inside]] = z[inside]
    c = torch.empty(5000, 7)
    with dspark_ops.use_backend(backend):
        s = dspark_ops.prefix_survival(
            logits=rows, scale=scale, bias=bias, offset=offset, slots=slots, out_confidence=c
        )
        assert torch.equal(s, dspark_ops.prefix_survival(c))
    safe = slots.clamp(0, 8999)
    x = (scale * rows[safe] + bias) + offset[safe][:, None]
    exact = torch.sigmoid(x.double()).nan_to_num(0.0).float()
    exact = torch.where((exact < 2.0**-100) | ~inside[:, None], 0.0, exact)
    assert ulps(c, exact) <= 2


def test_slots_generation_and_freshness(backend: str) -> None:
    table = torch.tensor([[0.5, 0.5], [0.25, 1.0], [0.75, 0.5]])
    slots = torch.tensor([2, 0, 7, -1, 1])
    with dspark_ops.use_backend(backend):
        assert dspark_ops.prefix_survival(table, slots=slots).tolist() == [
            [0.75, 0.375], [0.5, 0.25], [0, 0], [0, 0], [0.25, 0.25],
        ]  # fmt: skip
        got = dspark_ops.prefix_survival(
            table, slots=slots, generation=torch.tensor([3, 0, 5]), expected=torch.tensor([5, 2, 3, 3, 0])
        )
    # fresh; another generation; out of range twice; a generation of 0 is never fresh
    assert got.tolist() == [[0.75, 0.375], [1, 1], [1, 1], [1, 1], [1, 1]]


def test_strided_input_and_out(backend: str) -> None:
    wide = torch.rand(6, 10)
    out = torch.empty(6, 5)
    with dspark_ops.use_backend(backend):
        got = dspark_ops.prefix_survival(wide[:, ::2], out=out)
    assert got is out
    assert np.array_equal(out.numpy(), np.float32(oracle.survival(wide[:, ::2].tolist())))
