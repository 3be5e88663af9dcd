"""`max_safe_verify_len`: search over every length, and a simulation of what a partial acceptance loses."""

from __future__ import annotations

import pytest
import torch

import dspark_ops
from dspark_ops import max_safe_verify_len

INT32_MAX = (1 << 31) - 1


def kept_from(s: int, length: int, ratio: int, coff: int) -> int:
    """First position whose state a step of this length keeps; also the first that the next step may read."""
    return ((s + length) // ratio - (coff - 1)) * ratio


def brute_force(s: int, ratio: int, coff: int, ring: int | None, longest: int) -> int:
    safe = [1]
    for length in range(2, longest + 1):
        keeps = kept_from(s, length, ratio, coff) <= max(s, kept_from(s, 1, ratio, coff))
        fits = ring is None or length <= ring - coff * ratio + 1
        if keeps and fits:
            safe.append(length)
    return max(safe)


def loses_state(s: int, length: int, ratio: int, coff: int) -> bool:
    """Whether some acceptance of a step leaves the next one without the state of a committed position."""
    saved = kept_from(s, length, ratio, coff)
    return any(
        position < saved
        for commit in range(1, length + 1)
        for position in range(max(s, kept_from(s, commit, ratio, coff)), s + commit)
    )


@pytest.mark.parametrize(("ratio", "coff"), [(4, 2), (128, 1), (1, 1), (7, 3), (2, 1)])
@pytest.mark.parametrize("ring", [None, 16, 140])
def test_brute_force(ratio: int, coff: int, ring: int | None, backend: str) -> None:
    starts = [*range(3 * ratio + 2), 100_003, INT32_MAX - 1, INT32_MAX]
    with dspark_ops.use_backend(backend):
        for longest in (1, 3, 16, 300):
            got = max_safe_verify_len(torch.tensor(starts), ratio, coff, longest, ring=ring)
            assert got.tolist() == [brute_force(s, ratio, coff, ring, longest) for s in starts]


@pytest.mark.parametrize(("ratio", "coff"), [(4, 2), (128, 1), (7, 3)])
def test_no_acceptance_loses_state_and_one_more_row_would(ratio: int, coff: int, backend: str) -> None:
    starts = range(2 * ratio * coff)
    with dspark_ops.use_backend(backend):
        safe = max_safe_verify_len(torch.tensor(starts), ratio, coff, 1 << 18).tolist()
    for s, length in zip(starts, safe, strict=True):
        assert not loses_state(s, length, ratio, coff)
        assert loses_state(s, length + 1, ratio, coff)


def test_values_outside_the_range(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        got = max_safe_verify_len(torch.tensor([-9, 0, 1 << 40, INT32_MAX]), 4, 2, 8)
    assert got[0] == got[1]
    assert got[2] == got[3]


def test_strided_input_and_out(backend: str) -> None:
    out = torch.empty(2, dtype=torch.int32)
    with dspark_ops.use_backend(backend):
        got = max_safe_verify_len(torch.tensor([126, 0, 127, 0])[::2], 128, 1, 8, out=out)
    assert got is out
    assert out.tolist() == [1, 8]


def test_compiles(backend: str) -> None:
    with dspark_ops.use_backend(backend):
        got = torch.compile(max_safe_verify_len, fullgraph=True, backend="aot_eager")(
            torch.tensor([126, 127]), 128, 1, 8
        )
    assert got.tolist() == [1, 8]
