"""Partial acceptance and a compressor's state: what `max_safe_verify_len` promises, and that it promises no less.

Decoding token by token = ragged verification with partial acceptance: in block form always, in explicit form exactly
when lengths obey the caps. The compressor is tests/compressor_model.py.
"""

from __future__ import annotations

from random import Random

import pytest
import torch
from compressor_model import Compressor, Serving, sequence

from dspark_ops import max_safe_verify_len

C4, C128 = Compressor(4, 2), Compressor(128, 1)
RING = {4: 64, 128: 512}  # so large that only the rule about lost rows bounds a length


def caps(model: Compressor, starts: list[int], width: int, ring: int) -> list[int]:
    return max_safe_verify_len(torch.tensor(starts), model.ratio, model.coff, width, ring=ring).tolist()


def random_sequences(model: Compressor, form: str, width: int, capped: bool, ring: int, requests: int = 40) -> int:
    """How many of so many random sequences end with a wrong entry."""
    rng = Random(f"{model.ratio}/{width}")
    enough = 2 * model.ratio + 20
    future = [sequence(rng, enough + width) for _ in range(requests)]
    serving = Serving(
        model, form, [t[: rng.randint(max(1, model.ratio - 30), model.ratio)] for t in future], width, ring
    )
    while min(len(t) for t in serving.tokens) < enough:
        start = [len(t) for t in serving.tokens]
        most = caps(model, start, width, ring) if capped else [width] * requests
        lens = [rng.randint(1, m) if s < enough else 0 for m, s in zip(most, start, strict=True)]
        accepted = [rng.randint(min(n, 1), n) for n in lens]
        serving.step(lens, [t[s:] for t, s in zip(future, start, strict=True)], accepted)
    return sum(serving.wrong())


@pytest.mark.parametrize("model", [C4, C128], ids=["C4", "C128"])
@pytest.mark.parametrize("width", [2, 8])
def test_block_form_never_loses_state(model: Compressor, width: int) -> None:
    assert random_sequences(model, "block", width, False, RING[model.ratio]) == 0


@pytest.mark.parametrize("ring", [{4: 16, 128: 256}, RING], ids=["ring as served", "large ring"])
@pytest.mark.parametrize("model", [C4, C128], ids=["C4", "C128"])
@pytest.mark.parametrize("width", [1, 8])
def test_explicit_form_within_the_caps_does_not(model: Compressor, width: int, ring: dict[int, int]) -> None:
    assert random_sequences(model, "explicit", width, True, ring[model.ratio]) == 0


@pytest.mark.parametrize(("model", "width"), [(C4, 5), (C4, 8), (C128, 2), (C128, 8)])
def test_explicit_form_past_the_caps_does(model: Compressor, width: int) -> None:
    assert random_sequences(model, "explicit", width, False, RING[model.ratio]) > 0


def after_one_step(
    model: Compressor, tried: list[tuple[int, int, int]], width: int, ring: int
) -> dict[tuple[int, int], bool]:
    """Per (start, length), whether some acceptance of one such step spoils what token by token decoding then gives."""
    rng = Random(1)
    future = [sequence(rng, s + width + model.coff * model.ratio + 1) for s, _, _ in tried]
    serving = Serving(model, "explicit", [t[:s] for t, (s, _, _) in zip(future, tried, strict=True)], width, ring)
    lens, accepted = [n for _, n, _ in tried], [a for _, _, a in tried]
    for _ in range(model.coff * model.ratio):
        start = [len(t) for t in serving.tokens]
        serving.step(lens, [t[s:] for t, s in zip(future, start, strict=True)], accepted)
        lens = accepted = [1] * len(tried)
    spoilt: dict[tuple[int, int], bool] = {}
    for (s, n, _), wrong in zip(tried, serving.wrong(), strict=True):
        spoilt[s, n] = spoilt.get((s, n), False) or wrong
    return spoilt


@pytest.mark.parametrize(
    ("model", "starts"), [(C4, list(range(1, 20))), (C128, [119, 122, 125, 126, 127, 128, 254])], ids=["C4", "C128"]
)
def test_the_cap_is_the_longest_safe_length(model: Compressor, starts: list[int]) -> None:
    width, ring = 9, RING[model.ratio]
    safe = dict(zip(starts, caps(model, starts, width, ring), strict=True))
    lengths = [(s, n) for s in starts for n in (safe[s], safe[s] + 1) if n <= width]
    spoilt = after_one_step(model, [(s, n, a) for s, n in lengths for a in range(1, n + 1)], width, ring)
    assert spoilt == {(s, n): n > safe[s] for s, n in lengths}
    assert any(spoilt.values())


@pytest.mark.parametrize("ring", [8, 10])
def test_the_ring_bounds_the_length(ring: int) -> None:
    """One row more overwrites a row that an entry of this very step reads. (In larger rings, lost rows bind first.)"""
    starts = list(range(1, 20))
    for extra in (0, 1):
        length = ring - 2 * 4 + 1 + extra
        fits = [s for s, n in zip(starts, caps(C4, starts, 8, RING[4]), strict=True) if n >= length]
        spoilt = after_one_step(C4, [(s, length, a) for s in fits for a in range(1, length + 1)], 8, ring)
        assert any(spoilt.values()) == bool(extra)
    assert max(caps(C4, starts, 8, ring)) == ring - 2 * 4 + 1
