"""The layout and compressor kernels of csrc/ascend under emulation: sizes and values around every limit they have.

That each equals the reference on random cases is in test_operators.py; token-by-token simulations, for this back end as
for the others, are in test_padding.py, test_compressor_layout.py and test_state_rows.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from dspark_ops import ascend_host
from dspark_ops.testing import case, compare, run
from dspark_ops.testing.compressor import _entries as entries
from dspark_ops.testing.generate import ints, poison

BACKEND = "ascend_host"
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")

STEMS = ("ragged_layout", "pad_to_bucket", "compressor_layout", "state_rows", "state_blocks")
I32, I64 = torch.int32, torch.int64
Case = tuple[Any, ...]


def i32(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=I32)


def cumulative(lens: Tensor) -> Tensor:
    return torch.cat([i32([0]), lens.cumsum(0).int()])


def ragged(lens: Tensor, rows: int, gamma: int = 3, prefix: Tensor | None = None) -> Case:
    batch, g = lens.numel(), torch.Generator().manual_seed(rows)
    prefix = torch.arange(batch, dtype=I64) * 7 if prefix is None else prefix
    root = torch.randint(-9, 1 << 40, [batch], generator=g)
    draft = torch.randint(-9, 1 << 40, [batch, gamma], generator=g)
    outputs = [([batch + 1], I32), ([rows], I32), ([rows], I32), ([rows], I64), ([rows], I64), ([batch], I32)]
    return (lens, prefix, root, draft, *(poison(shape, dtype) for shape, dtype in [*outputs, ([batch + 1], I32)]))


def ragged_cases() -> Iterator[Case]:
    """Requests around 1792 and rows around 1024 at a time; empty, single and long requests; more drafts than fit."""
    rng = Random(0)
    for batch in (1791, 1792, 1793, 3600):
        lens = ints(rng, batch, 0, 2)
        yield ragged(lens, int(lens.sum()) + rng.randint(-40, 40), 1, ints(rng, batch, 0, 9000))
    for rows in (1023, 1024, 1025, 2600):
        yield ragged(i32([0, rows - 3, 0, 1, 1, 5, 0]), rows)
        yield ragged(i32([1] * 9), rows)
    yield ragged(ints(rng, 20, 0, 300), 3000, 2000)
    yield ragged(i32([4000, 3]), 4100, 5000)
    yield ragged(torch.cat([torch.zeros(2000, dtype=I32), i32([3])]), 5)
    high = torch.tensor([(1 << 30) - 1, 1 << 30, (1 << 31) - 1, (1 << 63) - 1, -(1 << 31), -(1 << 63)])
    for prefix in (high[:1], high[1:2], high):
        yield ragged(ints(rng, prefix.numel(), 1, 5), 30, prefix=prefix)
    yield ragged(i32([1 << 30, (1 << 30) - 1, 3, 7]), 50)


def compressor(lens: Tensor, start: Tensor, rows: int, table: dict[str, Any], used: Tensor | None = None) -> Case:
    ratio, pages, size, pad = (table[k] for k in ("ratio", "pages", "size", "pad"))
    batch = lens.numel()
    out = entries(batch, rows, ratio, table.get("slot", I32))
    lengths = (poison([batch], I32) for _ in range(3))
    used = lens if used is None else used
    numbers = (ratio, pages, size, pad, 1, None, 1, 0)
    return (cumulative(lens), used, start, rows, True, *numbers, *lengths, *out, None, None, None, None)


def compressor_cases() -> Iterator[Case]:
    """Requests around 1792 and entries around 448 at a time; pages of one entry; every value that needs 64 bits."""
    rng = Random(1)

    def table(
        ratio: int, batch: int, size: int = 16, pad: int = -1, high: int = 9999, dtype: torch.dtype = I32
    ) -> dict[str, Any]:
        pages = ints(rng, batch * 40, -1, high, dtype).reshape(batch, 40)
        return {"ratio": ratio, "pages": pages, "size": size, "pad": pad}

    for batch in (1792, 1793):
        lens, start = ints(rng, batch, 0, 8), ints(rng, batch, 0, 300)
        yield compressor(lens, start, int(lens.sum()), table(4, batch, 2, dtype=rng.choice([I32, I64])))
    for rows in (447, 448, 449, 2000):
        for size in (1, 3, 64):
            yield compressor(i32([rows - 9, 0, 9]), i32([5, 1, 0]), rows, table(1, 3, size, dtype=I64))
    yield compressor(i32([40] * 30), ints(rng, 30, 0, 200), 1200, table(1, 30, 1))
    for top in ((1 << 30) - 1, 1 << 30, (1 << 30) + 1, (1 << 31) - 1):
        yield compressor(i32([9, 9]), i32([3, top]), 18, table(4, 2, 1 << 26, high=9))
    for ratio in (7, 385, 1000, 1009):  # quotients by no power of two, at multiples and just below
        start = ints(rng, 60, 0, 1 << 30) // ratio * ratio
        start[::2] -= 1
        lens = torch.full([60], ratio, dtype=I32)
        yield compressor(lens, start, 60 * ratio, table(ratio, 60, 1 << 26, high=9))
    for high, size in (((1 << 31) // 64 - 1, 64), ((1 << 31) // 64 + 1, 64), (1, 1 << 30), (1 << 40, 5)):
        for slot in (I32, I64):
            wide = table(1, 1, size, high=high, dtype=I64) | {"slot": slot}
            wide["pages"][0, :4] = high
            yield compressor(i32([300]), i32([0]), 300, wide)
    for pad in (-(1 << 31), 1 << 40):
        slot = I64 if pad > 0 else I32
        yield compressor(i32([9, 4]), i32([0, 99]), 30, table(4, 2, 2, pad) | {"slot": slot}, i32([9, 0]))
    far = compressor(i32([5]), i32([0]), (1 << 31) - 1, table(1 << 20, 1))
    yield (i32([-(1 << 31), (1 << 31) - 1]), i32([(1 << 31) - 1]), *far[2:])


def rows_case(batch: int, ring: int, ratio: int, coff: int, width: int, maps: Case, seed: int = 0) -> Case:
    rng = Random(seed)
    owned = ints(rng, batch, 0, width)
    used = owned * ints(rng, batch, 0, 1)
    start, slot = ints(rng, batch, 0, 500), ints(rng, batch, -1, 40)
    out = poison([batch, coff * ratio + width], I32)
    return (cumulative(owned), used, start, slot, *maps[:2], ratio, coff, ring, maps[2], -7, out)


def paged_maps(rng: Random, dtype: torch.dtype, page: int, high: int = 1 << 20) -> Case:
    """Tokens of 40 requests in pages that lie anywhere, as a pool gives them, and its map to another pool's pages."""
    pages, swa = rng.sample(range(900), 40 * 9), rng.sample(range(high // 64), 900)
    within = torch.arange(64)
    tokens = (torch.tensor(pages).reshape(40, 9, 1) * 64 + within).reshape(40, -1)
    mapping = (torch.tensor(swa)[:, None] * 64 + within).flatten()
    return tokens.int(), mapping.to(dtype), page


def state_cases() -> Iterator[tuple[str, Case]]:
    rng = Random(2)
    for batch, ring, ratio, width in ((27, 256, 128, 8), (500, 16, 4, 8), (3, 300, 128, 4000), (5, 77, 3000, 1000)):
        yield "state_rows", rows_case(batch, ring, ratio, 1 + (ratio == 4), width, (None, None, 0))
    for ring in (1, 2, 1000, (1 << 29) - 1, 1 << 29, (1 << 29) + 1, (1 << 31) - 1):
        case_ = rows_case(9, ring, 4, 2, 8, (None, None, 0))
        last = ((1 << 31) - 1) // ring
        slot = torch.tensor([last, min(last + 1, (1 << 31) - 1), last - 1, 0, 1 << 31, 1 << 32, -1, last // 2, last])
        start = i32([0, 1, 2, ring - 1, ring // 2, (1 << 31) - 1, 3, (1 << 31) - 4, ring % 5])
        yield "state_rows", (cumulative(i32([8] * 9)), i32([8] * 9), start, slot, *case_[4:])
    for ring in (3, 100, 384, 385, 1000, 1_000_003, (1 << 29) - 1):  # division by no power of two
        start = ints(rng, 800, 0, (1 << 31) - 1)
        start[::2] = start[::2] // ring * ring - ints(rng, 400, 0, 1)
        owned = torch.ones(800, dtype=I32)
        slot = torch.zeros(800, dtype=I32)
        yield "state_rows", (cumulative(owned), owned, start, slot, None, None, 1, 1, ring, 0, 0, poison([800, 2], I32))
    far = paged_maps(rng, I64, 128)
    far[1][::3] += 1 << 33
    yield "state_rows", rows_case(40, 16, 4, 2, 8, far)
    for dtype in (I32, I64):
        for batch, width, page in ((200, 8, 64), (30, 300, 100), (2, 3000, 128)):
            yield "state_rows", rows_case(batch, 16, 4, 2, width, paged_maps(rng, dtype, page), batch)
        yield "state_rows", rows_case(60, 1 << 20, 4, 2, 8, paged_maps(rng, dtype, 64, 1 << 30), 5)
    tokens, mapping, page = paged_maps(rng, I32, 64)
    tokens[::2, ::3] = -1
    tokens[1::2, ::2] = ints(rng, tokens[1::2, ::2].numel(), -5, 70_000).reshape(20, -1)
    yield "state_rows", rows_case(90, 16, 4, 2, 8, (tokens, mapping, page), 6)
    for batch, blocks, size, dtype in (
        (300, 1024, 128, I32),
        (60, 700, 4, I64),
        (3, 40_000, 1, I32),
        (2, 20_001, 1, I64),
    ):
        ids = torch.arange(1, batch * blocks + 1, dtype=dtype).reshape(batch, blocks)
        start, used = ints(rng, batch, 0, blocks * size), ints(rng, batch, 0, 9)
        used[:1], start[1:2] = blocks * size, blocks * size - 3
        yield "state_blocks", (ids, used, start, 4, 2, size, poison([batch, blocks], dtype))


def sized_cases() -> Iterator[tuple[str, Case]]:
    yield from (("ragged_layout", c) for c in ragged_cases())
    yield from (("compressor_layout", c) for c in compressor_cases())
    yield from state_cases()
    for batch, slots in ((3584, 3584), (3585, 3585), (5, 9000), (4000, 4000)):
        lens = ints(Random(batch), batch, -2, 8)
        for rows in (9 * batch, (1 << 31) - 1):
            yield "pad_to_bucket", (lens, rows, -1, poison([slots], I32), poison([slots], I32))
    yield "pad_to_bucket", (i32([16_777_215, 1]), 16_777_300, -1, poison([5], I32), poison([5], I32))


@pytest.mark.parametrize("blocks", [0, 3])
def test_sizes_and_limits(blocks: int) -> None:
    with ascend_host.options(blocks=blocks, whole_blocks=True):
        for stem, args in sized_cases():
            compare(stem, args, BACKEND)


@pytest.mark.parametrize("blocks", [1, 2, 5, 40])
def test_any_number_of_blocks(blocks: int) -> None:
    with ascend_host.options(blocks=blocks, poison=0xA5, whole_blocks=True):
        for stem in STEMS:
            for seed in range(20):
                compare(stem, case(stem, 900 + seed), BACKEND)


def shifted(args: Case, stem: str) -> Case:
    """Every output in the middle of a larger buffer, at no 32-byte boundary."""
    writes = [a.alias_info is not None for a in getattr(torch.ops.dspark, stem).default._schema.arguments]

    def move(t: Any, is_output: bool) -> Any:
        if not is_output or not isinstance(t, Tensor):
            return t
        return poison([t.numel() + 5], t.dtype)[1 : t.numel() + 1].reshape(t.shape)

    return tuple(move(t, w) for t, w in zip(args, writes, strict=True))


@pytest.mark.parametrize("stem", STEMS)
def test_outputs_at_any_address(stem: str) -> None:
    """Then one core writes them, so that no 32-byte block has two writers."""
    with ascend_host.options(blocks=3, whole_blocks=True):
        for seed in range(20):
            args = case(stem, 300 + seed)
            want, got = run(stem, args, "reference"), shifted(args, stem)
            getattr(torch.ops.dspark_ascend_host, stem).default(*got)
            for a, b in zip(got, want, strict=True):
                assert not isinstance(a, Tensor) or torch.equal(a, b)


def typical_step(batch: int) -> Iterator[tuple[str, Case]]:
    """As a server's step is: positions of a long context, pages of 64, rings of 16 and 256, idle requests."""
    rng = Random(batch)
    lens, start = ints(rng, batch, 0, 8), ints(rng, batch, 0, 130_000)
    rows = int(lens.sum()) + 7
    yield "ragged_layout", ragged(lens, rows, 7, start.long())
    for ratio, dtype in ((4, I32), (128, I64)):
        pages = torch.randint(0, 9000, [batch, 130_100 // ratio // 16 + 1], dtype=dtype)
        table = {"ratio": ratio, "pages": pages, "size": 16, "pad": 0, "slot": dtype}
        yield "compressor_layout", compressor(lens, start, rows, table)
    cu, slot = cumulative(lens), torch.randperm(batch)
    yield "state_rows", (cu, lens, start, slot, None, None, 128, 1, 256, 0, 0, poison([batch, 136], I32))
    maps = paged_maps(rng, I64, 64)
    yield "state_rows", (cu, lens, start % 500, slot % 40, *maps[:2], 4, 2, 16, 64, 0, poison([batch, 16], I32))
    blocks = torch.randint(1, 9999, [batch, 1024], dtype=I32)
    yield "state_blocks", (blocks, lens, start, 128, 1, 128, poison([batch, 1024], I32))
    yield "pad_to_bucket", (lens, 9 * batch, -1, poison([batch + 3], I32), poison([batch + 3], I32))


def test_a_step_leaves_little_to_the_scalar_unit() -> None:
    """No scalar read of global memory but where tokens leave a page: the slow ways are for senseless values only."""
    ascend_host.load()
    for stem, args in typical_step(200):
        compare(stem, args, BACKEND)
        ascend_host.counters()
        run(stem, args, BACKEND)
        counts = ascend_host.counters()
        assert counts["scalar_gm_reads"] <= 200 * (args[4] is not None if stem == "state_rows" else 0), (stem, counts)
        assert counts["scalar_reads"] <= 14 * 200 and counts["scalar_writes"] <= 3 * 200, (stem, counts)
