"""`update_offset`: an independent float32 loop, the cases that leave an offset alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

import dspark_ops
from dspark_ops.testing import case, run

F = np.float32


def slow(args: tuple[Any, ...]) -> list[np.float32]:
    """The formula of DESIGN 3.10, one request and one draft at a time."""
    confidence, correct_len, verify_lens, slots, decay, eta, limit, offset = args
    gamma = confidence.shape[1]
    after = [F(x) for x in offset.tolist()]
    for r in range(confidence.shape[0]):
        slot = r if slots is None else int(slots[r])
        correct = min(max(int(correct_len[r]), 0), gamma)
        length = min(max(int(verify_lens[r]), 0), gamma + 1)
        if length == 0 or not 0 <= slot < len(after):
            continue
        total = F(0)
        for k in range(min(correct + 1, length - 1)):
            c = F(confidence[r, k].item())
            c = F(0) if math.isnan(c) else min(max(c, F(0)), F(1))
            total = F(total + F(F(k < correct) - c))
        with np.errstate(invalid="ignore"):
            old = F(F(decay) * after[slot])
        new = F((F(0) if math.isnan(old) else old) + F(F(eta) * total))
        after[slot] = min(max(new, -F(limit)), F(limit))
    return after


def test_equals_the_slow_loop(backend: str) -> None:
    for seed in range(200):
        args = case("update_offset", seed)
        got = run("update_offset", args, backend)[-1]
        np.testing.assert_array_equal(got.numpy(), np.array(slow(args), dtype=F))


def test_by_hand(backend: str) -> None:
    offset = torch.zeros(3)
    confidence = torch.tensor([[0.5, 0.25], [0.5, 0.25], [0.5, 0.25]])
    with dspark_ops.use_backend(backend):
        got = dspark_ops.update_offset(
            offset,
            confidence,
            torch.tensor([2, 1, 0], dtype=torch.int32),
            torch.tensor([3, 3, 3], dtype=torch.int32),
            eta=1.0,
        )
    assert got is offset
    # both accepted: 0.5 + 0.75; one accepted, one refused: 0.5 - 0.25; the first refused: -0.5, the second unseen
    assert offset.tolist() == [1.25, 0.25, -0.5]


def lens(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def test_length_0_changes_no_bit_and_length_1_only_decays(backend: str) -> None:
    offset = torch.tensor([float("nan"), 7.0, 2.0, float("nan")])
    with dspark_ops.use_backend(backend):
        dspark_ops.update_offset(offset, torch.full((4, 3), 0.5), lens(0, 0, 0, 0), lens(0, 0, 1, 1), decay=0.5)
    assert math.isnan(offset[0]) and offset[1:].tolist() == [7.0, 1.0, 0.0]


def test_rates_are_rounded_to_float32_first(backend: str) -> None:
    offset = torch.tensor([1.0])
    with dspark_ops.use_backend(backend):
        dspark_ops.update_offset(offset, torch.zeros(1, 1), lens(0), lens(1), decay=0.1)
        assert offset.item() == F(0.1)
        offset.fill_(100.0)
        dspark_ops.update_offset(offset, torch.zeros(1, 1), lens(0), lens(1), limit=0.7)
    assert offset.item() == F(0.7)


def test_slots_out_of_range_touch_nothing(backend: str) -> None:
    offset = torch.arange(4.0)
    slots = torch.tensor([-1, 2, 4, 1 << 40])
    with dspark_ops.use_backend(backend):
        dspark_ops.update_offset(offset, torch.zeros(4, 1), lens(1, 1, 1, 1), lens(2, 2, 2, 2), slots=slots, eta=0.5)
    assert offset.tolist() == [0.0, 1.0, 2.5, 3.0]


def test_repeated_slots_are_memory_safe(backend: str) -> None:
    offset = torch.zeros(2)
    with dspark_ops.use_backend(backend):
        dspark_ops.update_offset(
            offset, torch.zeros(3, 1), lens(1, 1, 1), lens(2, 2, 2), slots=torch.tensor([1, 1, 1]), eta=0.5
        )
    assert offset[0] == 0.0 and offset[1] in (0.5, 1.0, 1.5)


def test_strided_input(backend: str) -> None:
    confidence = torch.rand(4, 3)
    wide = torch.stack([confidence, torch.full_like(confidence, 9.0)], dim=-1)[..., 0]
    assert not wide.is_contiguous()
    a, b = torch.zeros(4), torch.zeros(4)
    with dspark_ops.use_backend(backend):
        dspark_ops.update_offset(a, confidence, lens(0, 1, 2, 3), lens(4, 4, 4, 4))
        dspark_ops.update_offset(b, wide, lens(0, 1, 2, 3), lens(4, 4, 4, 4))
    assert torch.equal(a, b) and a.abs().sum() > 0


def test_compiles_and_recompiles_for_another_rate() -> None:
    compiled = torch.compile(dspark_ops.update_offset, fullgraph=True, backend="aot_eager")
    for decay in (0.9, 0.8, 0.7):
        got, want = torch.ones(2), torch.ones(2)
        args = (torch.full((2, 3), 0.4), lens(1, 3), lens(3, 4))
        compiled(got, *args, decay=decay)
        dspark_ops.update_offset(want, *args, decay=decay)
        assert torch.equal(got, want) and got[0] != 1
