"""`verify_metadata` gives the bits of the three operators, in two launches; the other operators take one each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import torch

from dspark_ops import CompressorTable, compressor_layout, pad_to_bucket, ragged_layout, use_backend
from dspark_ops.testing import case, run
from dspark_ops.testing.compare import assert_same
from dspark_ops.testing.generate import ints
from dspark_ops.testing.layout import verify_lens

pytest.importorskip("triton")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs TRITON_INTERPRET=1 set before Python starts", allow_module_level=True)

ONE_LAUNCH = [
    "ragged_layout", "pad_to_bucket", "compressor_layout", "state_rows", "state_blocks", "scatter_to_strided",
    "gather_from_strided", "accept_greedy", "finalize_accept", "update_offset",
]  # fmt: skip


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the kernels that are launched."""
    from triton.runtime.interpreter import GridExecutor

    names: list[str] = []
    original = GridExecutor.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        names.append(self.fn.__name__)
        original(self, *args, **kwargs)

    monkeypatch.setattr(GridExecutor, "__call__", call)
    yield names


def flat(result: Any) -> list[torch.Tensor]:
    if result is None or isinstance(result, torch.Tensor):
        return [] if result is None else [result]
    return [t for part in result for t in flat(part)]


def arguments(rng: Random, batch: int, slots: int) -> dict[str, Any]:
    page_tables = [ints(rng, slots * 4, -1, 99).reshape(slots, 4) for _ in range(2)]
    tables = [CompressorTable(r, t, 8) for r, t in zip((4, 128), page_tables, strict=True)]
    prefix = ints(rng, slots, 0, 300, rng.choice([torch.int32, torch.int64]))
    tokens: dict[str, Any] = {"root_tokens": ints(rng, slots, 0, 99, torch.int64)}
    tokens["draft_tokens"] = ints(rng, slots * 3, 0, 99, torch.int64).reshape(slots, 3)
    return {"prefix": prefix, **rng.choice([{}, tokens]), "tables": rng.choice([tables, tables[:1]])}


def test_equals_the_three_operators(launches: list[str]) -> None:
    from dspark_ops.triton.verify_metadata import verify_metadata

    for seed in range(40):
        rng = Random(seed)
        batch = rng.choice([0, 1, 3, 20, 150])
        slots = batch + rng.choice([0, 0, 1, 7])
        lens, rows, cap = verify_lens(rng, batch), rng.choice([0, 9, 5 * batch, 700]), rng.choice([None, 0, 4])
        rest = arguments(rng, batch, slots)
        launches.clear()
        got = verify_metadata(lens, rows, slots, cap=cap, **rest)
        assert len(launches) == 2
        with use_backend("reference"):
            tables = rest.pop("tables")
            padded = pad_to_bucket(lens, rows, slots, cap=cap)
            layout = ragged_layout(padded.padded, rows, **rest)
            compressor = compressor_layout(layout.cu_seqlens, padded.seqused, rest["prefix"], rows, tables)
        for i, (a, b) in enumerate(zip(flat(got), flat((padded, layout, compressor)), strict=True)):
            assert_same("verify_metadata", f"output {i} of seed {seed}", a, b)


def test_out_keeps_addresses_and_bad_input() -> None:
    from dspark_ops.triton.verify_metadata import verify_metadata

    rest = arguments(Random(1), 3, 4)
    lens = torch.tensor([2, 1, 3], dtype=torch.int32)
    first = verify_metadata(lens, 9, 4, **rest)
    again = verify_metadata(lens.flip(0), 9, 4, **rest, out=first)
    assert all(a is b for a, b in zip(flat(first), flat(again), strict=True))
    assert first.layout.cu_seqlens.tolist() == [0, 3, 4, 6, 9]
    assert first.padded.seqused.tolist() == [3, 1, 2, 0]
    assert verify_metadata(lens, 9, 4).compressor is None
    with pytest.raises(ValueError, match="prefix: expected a tensor, since tables are given; got None"):
        verify_metadata(lens, 9, 4, tables=rest["tables"])
    with pytest.raises(ValueError, match=r"prefix: expected shape \[5\], got \[4\]"):
        verify_metadata(lens, 9, 5, prefix=rest["prefix"])
    with pytest.raises(ValueError, match="num_slots: expected at least one per request, got 2 for 3"):
        verify_metadata(lens, 9, 2)


@pytest.mark.parametrize("stem", ONE_LAUNCH)
def test_one_launch(stem: str, launches: list[str]) -> None:
    for seed in range(20):
        launches.clear()
        run(stem, case(stem, seed), "triton_interpret")
        assert len(launches) <= 1
