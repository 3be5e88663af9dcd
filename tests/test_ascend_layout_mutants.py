"""Errors planted in the layout and compressor kernels of csrc/ascend, each with the test that notices it."""

from __future__ import annotations

import shutil

import pytest
from workshop import Workshop

pytestmark = [pytest.mark.full, pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")]

HERE, RANDOM = "tests/test_ascend_layout.py", "tests/test_operators.py::test_equals_reference"
SIZES, BLOCKS = f"{HERE}::test_sizes_and_limits", f"{HERE}::test_any_number_of_blocks"
# name: (file of csrc/ascend, the text, its replacement, the test that must notice, what it must say)
MUTANTS = {
    "sums near 2^31 are left to the vector unit": ("owners.h", "< 2.1e9f", "< 2.1e19f", RANDOM, "Mismatch"),
    "a bisection that is a step short": (
        "owners.h",
        "while (entries < requests)",
        "while (2 * entries < requests)",
        RANDOM,
        "Mismatch",
    ),
    "a clamp of the sums too low": (
        "owners.h",
        "at_most(table, table, int32_t(kRows) + 1",
        "at_most(table, table, int32_t(kRows) - 1",
        SIZES,
        "past the end of the source",
    ),
    "the next chunk forgets the sum": ("owners.h", "before_ = total_;", "before_ = 0;", SIZES, "Mismatch"),
    "wide positions by Cast": (
        "ragged_layout_kernel.h",
        "kSimple = 1 << 30;  ",
        "kSimple = 0x7fffffff;",
        RANDOM,
        "Mismatch",
    ),
    "a window of drafts is skipped": (
        "ragged_layout_kernel.h",
        "at < end; at += kChunk)",
        "at < first + 1; at += kChunk)",
        SIZES,
        "Mismatch",
    ),
    "the zeros before the roots are not there": (
        "ragged_layout_kernel.h",
        "fill(arena_.whole_slot<int32_t>(kRoots), int32_t(0), 8);",
        "",
        RANDOM,
        "Mismatch",
    ),
    "two cores in one block": (
        "integers.h",
        "if (!aligned) return",
        "if (false) return",
        f"{HERE}::test_outputs_at_any_address",
        "32-byte block",
    ),
    "no flag before the rows go out": (
        "ragged_layout_kernel.h",
        "make_ids(n);\n    sync<HardEvent::V_MTE3>();",
        "make_ids(n);",
        RANDOM,
        "with no flag",
    ),
    "a float decides the sum": (
        "pad_to_bucket_kernel.h",
        "rough < 16000000.0f",
        "rough < 16000000000.0f",
        RANDOM,
        "Mismatch",
    ),
    "starts beyond 2^30 stay with the vector unit": (
        "compressor_layout_kernel.h",
        "<= float(2 * kMost)",
        "<= 1e12f",
        SIZES,
        "Mismatch",
    ),
    "large page ids stay with the vector unit": (
        "compressor_layout_kernel.h",
        "return false;",
        "return true;",
        RANDOM,
        "Mismatch",
    ),
    "remainders do not add up to an entry": (
        "compressor_layout_kernel.h",
        "add(used_rest, used_rest, 1 - ratio, n);",
        "add(used_rest, used_rest, -ratio, n);",
        RANDOM,
        "Mismatch",
    ),
    "a page id too few": (
        "compressor_layout_kernel.h",
        "uint32_t(past - page) * words);",
        "uint32_t(past - page) * words - words);",
        RANDOM,
        "Mismatch",
    ),
    "division without its last correction": (
        "integers.h",
        "is_positive(scratch, scratch, n);\n    move(quotient, rest, scratch, n);",
        "",
        SIZES,
        "Mismatch",
    ),
    "division without its second guess": ("integers.h", "if (by_ <= 384)", "if (by_ <= 1)", SIZES, "Mismatch"),
    "missed tokens are not looked up": (
        "state_rows_kernel.h",
        "uint64_t bits = ~words.GetValue(at / 64);",
        "uint64_t bits = 0;",
        SIZES,
        "Mismatch",
    ),
    "a token outside the map keeps what was copied": (
        "state_rows_kernel.h",
        "choose(map, map, inside, -1, n);",
        "",
        RANDOM,
        "Mismatch",
    ),
    "rows past int32 stay with the vector unit": (
        "state_rows_kernel.h",
        "if (rough > float(kMost) ||",
        "if (false && rough > float(kMost) ||",
        SIZES,
        "Mismatch",
    ),
    "the last ring has all its rows": (
        "state_tile.h",
        "multiply(limits(), limits(), ring - 1 - rest, n);",
        "multiply(limits(), limits(), ring, n);",
        SIZES,
        "Mismatch",
    ),
    "the block before the kept ones is not zero": (
        "integers.h",
        "rest{true, uint8_t(before)",
        "rest{true, uint8_t(0)",
        RANDOM,
        "Mismatch",
    ),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    shop = Workshop(tmp_path_factory.mktemp("ascend_layout_mutants"))
    shop.own_cache()
    return shop


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_caught(mutant: str, shop: Workshop) -> None:
    file, old, new, test, message = MUTANTS[mutant]
    only = ("-k", "ascend_host") if test == RANDOM else ()
    shop.catches((f"csrc/ascend/{file}", old, new, message), (*only, test))
