"""Tier arithmetic: SGLang's golden cases, corners, bad input."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import golden_data
from dspark_ops import tiers

GOLDEN = golden_data.load("tiers")


def test_golden() -> None:
    for c in GOLDEN:
        num_reqs, width, least = c["num_reqs"], c["width"], c["min_verify_len"]
        assert tiers.local_tier_rows(num_reqs, width, c["budget"], least) == c["local_tier_rows"]
        assert tiers.fill_budget(c["tier"], num_reqs, width, least) == c["fill_budget"]
        assert tiers.agree_tier(c["dp_tiers"]) == (-1 if c["dp_tier_rows"] is None else c["dp_tier_rows"])
        assert tiers.round_up_tier(c["total"], c["grid"]) == c["round_up"]


def test_filling_the_tier_of_a_plan_keeps_its_rows() -> None:
    for num_reqs in (0, 1, 5):
        for least in (0, 1, 3):
            for budget in range(20):
                rows = tiers.local_tier_rows(num_reqs, 4, budget, least)
                filled = tiers.fill_budget(rows, num_reqs, 4, least)
                assert tiers.local_tier_rows(num_reqs, 4, filled, least) == rows


def test_no_plan_anywhere_is_a_fall_back_everywhere() -> None:
    assert tiers.local_tier_rows(3, 4, None) == -1
    assert tiers.agree_tier([12, tiers.local_tier_rows(3, 4, None), 8]) == -1
    assert tiers.agree_tier([0, 0]) == tiers.agree_tier([]) == -1
    assert tiers.agree_tier([0, 8, 0]) == 8


def test_round_up() -> None:
    assert [tiers.round_up_tier(rows, [4, 8, 16]) for rows in (0, 4, 5, 16, 17)] == [4, 4, 8, 16, -1]


def test_tier_row() -> None:
    row = tiers.tier_row([1, 8, 64])
    assert row.dtype is torch.int32 and row.tolist() == [1, 8, 64]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tiers.tier_row([]), ValueError, "tiers: expected at least one tier"),
        (lambda: tiers.tier_row([4, 4]), ValueError, "tiers: expected strictly ascending rows, got 4 after 4"),
        (lambda: tiers.tier_row([0, 4]), ValueError, "tiers: expected an int in"),
        (lambda: tiers.tier_row([1, 1 << 31]), ValueError, "tiers: expected an int in"),
        (lambda: tiers.tier_row([1.0]), TypeError, "tiers: expected an int, got float"),  # type: ignore[list-item]
        (lambda: tiers.round_up_tier(3, [8, 4]), ValueError, "tiers: expected strictly ascending"),
        (lambda: tiers.round_up_tier(-1, [8]), ValueError, "rows: expected an int >= 0, got -1"),
        (lambda: tiers.agree_tier([True]), TypeError, "local_tiers: expected an int, got bool"),
        (lambda: tiers.local_tier_rows(-1, 4, 0), ValueError, "num_reqs: expected"),
        (lambda: tiers.local_tier_rows(1, 0, 0), ValueError, "width: expected"),
        (lambda: tiers.local_tier_rows(1, 4, -1), ValueError, "budget: expected"),
        (lambda: tiers.local_tier_rows(1, 4, None, 5), ValueError, "min_verify_len: expected"),
        (lambda: tiers.fill_budget(-1, 1, 4), ValueError, "tier: expected"),
    ],
)
def test_bad_input(call: Callable[[], object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
