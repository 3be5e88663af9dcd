"""AscendC moves and acceptance under emulation: the edges of pieces, chunks, tiles and cores, addresses past 2^32.

That each operator equals the reference on random cases is in test_operators.py, on any number of blocks and with any
bytes in the buffer in test_ascend_host.py.
"""

from __future__ import annotations

import shutil
from random import Random
from typing import Any

import pytest
import torch
from workshop import Workshop

from dspark_ops import ascend_host
from dspark_ops.testing import compare
from dspark_ops.testing.generate import ints, poison

BACKEND = "ascend_host"
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")


def offsets(lens: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.zeros(1, dtype=torch.int32), lens.cumsum(0, dtype=torch.int32)])


def random_bytes(rng: Random, rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    data = torch.frombuffer(bytearray(rng.randbytes(max(1, rows * columns * dtype.itemsize))), dtype=torch.uint8)
    return data[: rows * columns * dtype.itemsize].view(dtype).reshape(rows, columns)


# Bytes of a row: a core's grain of 512, one copy of the fill (16 KiB) and of rows (32 KiB); a vocabulary in bf16.
@pytest.mark.parametrize("blocks", [0, 1, 3])
@pytest.mark.parametrize(
    ("columns", "dtype"),
    [
        (511, torch.uint8), (513, torch.uint8), (16385, torch.uint8), (8192, torch.int32), (4097, torch.int64),
        (1031, torch.complex128), (200_001, torch.bfloat16),
    ],
)  # fmt: skip
def test_moves(columns: int, dtype: torch.dtype, blocks: int) -> None:
    rng = Random(columns)
    cu = offsets(torch.tensor([2, 0, 3, 1], dtype=torch.int32))
    compact, strided = (random_bytes(rng, rows, columns, dtype) for rows in (6, 12))
    shuffled = torch.tensor([3, 1, 2, 0, 5], dtype=torch.int32)
    fill = 0x0102030405060708
    with ascend_host.options(blocks=blocks):
        compare("scatter_to_strided", (compact, cu, 3, fill, poison([12, columns], dtype)), BACKEND)
        for which in (cu, shuffled):
            compare("gather_from_strided", (strided, which, fill, poison([7, columns], dtype)), BACKEND)


def test_a_row_past_four_gibibytes() -> None:
    """The last request of 2^17, whose rows begin at byte 5.2e9. Memory that nobody touches costs nothing."""
    batch, columns = 1 << 17, 20_000
    strided = torch.empty(2 * batch, columns, dtype=torch.uint8)
    strided[-2:] = torch.arange(columns, dtype=torch.int32).to(torch.uint8)
    cu = torch.zeros(batch + 1, dtype=torch.int32)
    cu[-1] = 2
    out = poison([3, columns], torch.uint8)
    with ascend_host.options(blocks=1):  # with several, the emulation remembers who read each word
        torch.ops.dspark_ascend_host.gather_from_strided.default(strided, cu, 9, out)
    assert torch.equal(out[:2], strided[-2:]) and bool((out[2] == 9).all())


def acceptance(batch: int, gamma: int, slots: bool, compact: bool) -> dict[str, tuple[Any, ...]]:
    """The acceptance operators' arguments of this size, learning included."""
    rng, width = Random(f"{batch}/{gamma}"), gamma + 1
    generator = torch.Generator().manual_seed(gamma)
    lens = ints(rng, batch, 0, width)
    target = ints(rng, batch * width, 0, 9, torch.int64).reshape(batch, width)
    draft = target[:, :gamma].clone()
    for r in range(0, batch, 2):
        draft[r, rng.randrange(gamma)] = 10
    owner = torch.randperm(2 * batch, generator=generator)[:batch] if slots else None
    learning = (torch.rand(batch, gamma, generator=generator), owner, 0.9, 0.3, 4.0, torch.full([2 * batch], 0.5))
    learning = learning if slots else (*learning[:5], torch.full([batch], 0.5))
    prefix, raw = ints(rng, batch, 0, 99), ints(rng, batch, 0, gamma)
    rows = (torch.cat([target[r, :n] for r, n in enumerate(lens.tolist())]), offsets(lens))
    form = rows if compact else (target, None)
    outputs = [poison([batch], t) for t in (torch.int32, torch.int32, torch.int64, torch.int32, torch.int32)]
    outputs.append(poison([batch, width], torch.int64))
    return {
        "accept_greedy": (draft, form[0], lens, prefix, form[1], *learning, *outputs),
        "finalize_accept": (raw, draft, lens, prefix, None, *form, *learning, *outputs),
        "update_offset": (learning[0], raw, lens, *learning[1:]),
    }


# A chunk holds 32 tokens, the bonus included; 64 confidences are in the buffer at once; a tile holds 64 requests.
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize(
    ("batch", "gamma", "blocks"), [(9, 31, 0), (9, 32, 2), (65, 33, 1), (9, 64, 0), (3, 65, 1), (2600, 2, 0)]
)
def test_acceptance(batch: int, gamma: int, blocks: int, compact: bool) -> None:
    with ascend_host.options(blocks=blocks):
        for stem, args in acceptance(batch, gamma, slots=gamma % 2 == 1, compact=compact).items():
            compare(stem, args, BACKEND)


def test_a_negative_zero_stays() -> None:
    """Where nothing is learnt and the limit is 0: a minimum or a maximum might turn it."""
    offset, lens, correct = torch.tensor([-0.0, 0.0, -1.0]), ints(Random(1), 3, 1, 4), ints(Random(2), 3, 0, 3)
    compare("update_offset", (torch.full([3, 3], 0.5), correct, lens, None, 1.0, 0.0, 0.0, offset), BACKEND)


def test_safe_lengths_of_more_requests_than_the_cores_hold_at_once() -> None:
    start = ints(Random(3), 2600, 0, (1 << 31) - 1)
    compare("max_safe_verify_len", (start, 128, 1, 256, 8, poison([2600], torch.int32)), BACKEND)


HERE, EQUAL = "tests/test_ascend_rows.py", "tests/test_operators.py::test_equals_reference"
BLOCKS = "tests/test_ascend_host.py::test_any_number_of_blocks"
# name: (file of csrc/ascend, the text, its replacement, the test that must notice, what it must say)
MUTANTS = {
    "a copy past the core's span": (
        "moves.h", "const int64_t end = min64(span_.end, (row + count) * p_.row_bytes);\n    for (int64_t at = "
        "max64(span_.begin, row * p_.row_bytes); at < end; at += kPiece)",
        "const int64_t end = (row + count) * p_.row_bytes;\n    for (int64_t at = "
        "max64(span_.begin, row * p_.row_bytes); at < end; at += kPiece)", EQUAL, "wrote, with no SyncAll",
    ),
    "no flag after the pattern is made": (
        "moves.h", "    sync<HardEvent::V_MTE3>();\n    has_pattern_", "    has_pattern_", EQUAL,
        "MTE3 reads what pipe",
    ),
    "wide elements are filled as words": (
        "moves.h", "(p_.element_bytes - 1)", "3", EQUAL, "Mismatch",
    ),
    "an owner is kept too long": (
        "gather_from_strided_kernel.h", "owner.until = min64(owner.until, end);", "owner.until = p.rows;", EQUAL,
        "Mismatch",
    ),
    "target rows past the buffer are read": (
        "accept.h", "min64(p_.target_rows - start - k, rows)", "rows", EQUAL, "outside every tensor",
    ),
    "the last column is not cleared": (
        "accept.h", "else if (last < kChunkTokens && last != at)", "else if (last < 0)", EQUAL, "Mismatch",
    ),
    "a slot past the table learns": ("learn.h", "slot < p_.num_slots", "slot <= p_.num_slots", EQUAL, "outside every"),
    "a tile is loaded over the one before": (
        "requests.h", "    AscendC::PipeBarrier<PIPE_ALL>();\n    first +=", "    first +=", BLOCKS, "overwrites what",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    shop = Workshop(tmp_path_factory.mktemp("ascend_rows"))
    shop.own_cache()
    return shop


@pytest.mark.full
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_caught(mutant: str, shop: Workshop) -> None:
    file, old, new, test, message = MUTANTS[mutant]
    tests = ("-k", "ascend_host", test) if test == EQUAL else (test,)
    shop.catches((f"csrc/ascend/{file}", old, new, message), tests)
