"""A plan of any size in several launches: keys, sort, sums, search, decide, ties, lengths, offsets.

It exists so that there is no silent limit: it serves what `_one_program` does not, up to B·N = 2^18. The order comes
from `torch.sort` on the device (a radix sort there; static shapes, no synchronisation, fit for graph capture) of bare
keys, its indices unused: a radix sort in Triton would need a scan over all programs per digit, several launches each,
to win little where a step takes tens of milliseconds. For the same reason both orders are sorted here, in one call,
where the small path selects: a selection over many programs is a launch per round. Sums, search, ties and lengths are
chunks that leave partial results (at most 128 of them) for the next kernel to add up: none loops over the whole.
Launches besides the sort: 5 for `plan_budget`, 5 for `schedule_verify_lens`, 7 to 10 for `allocate_verify_lens`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._launch import EXACT, cdiv, padded
from ._many_kernels import (
    CHUNK,
    CHUNKS,
    PROBES,
    decide_kernel,
    keys_kernel,
    lengths_kernel,
    offsets_kernel,
    search_kernel,
    sums_kernel,
    ties_kernel,
)
from ._plan import FIRST_DROP, Plan, rows
from .prefix_survival import ELEMENTS, MAX_COLUMNS, prefix_survival


def launch(p: Plan) -> None:
    survivals = _survivals(p)
    batch, gamma, device = p.batch, p.gamma, p.stats.device
    k = min(padded(gamma, 2), MAX_COLUMNS)
    b = ELEMENTS // k
    n, blocks = batch * gamma, cdiv(batch, b)
    chunks = cdiv(n, CHUNK)
    keys = torch.empty((len(survivals), n), dtype=torch.int32, device=device)
    totals = torch.empty((len(survivals), 4, blocks), dtype=torch.int64, device=device)
    for s, survival in enumerate(survivals):
        keys_kernel[(blocks,)](
            survival, p.caps, p.min_verify_len, p.max_verify_len, p.least, batch, gamma, keys[s], totals[s],
            B=b, K=k, **EXACT,
        )  # fmt: skip
    cut = _cut(p, keys, totals, n, chunks, blocks)
    if p.verify_lens is None:
        return

    chunk_ties = torch.empty(chunks, dtype=torch.int32, device=device)
    block_lens = torch.empty(blocks, dtype=torch.int64, device=device)
    ties_kernel[(chunks,)](keys, n, cut, chunk_ties, CHUNK=CHUNK)
    lengths_kernel[(blocks,)](
        keys, n, p.caps, p.min_verify_len, p.max_verify_len, batch, gamma, cut, chunk_ties, chunks, p.verify_lens,
        block_lens, B=b, K=k, CHUNK=CHUNK, CHUNKS=CHUNKS,
    )  # fmt: skip
    if p.cu_seqlens is not None:
        offsets_kernel[(blocks,)](p.verify_lens, block_lens, batch, p.cu_seqlens, B=b)


def _survivals(p: Plan) -> list[Tensor]:
    """The current survival, and the one that the budget is searched on if it is another."""
    if p.survival_in is not None:
        return [p.survival_in]
    assert p.values is not None and p.survival is not None  # an operator has either
    calibration = (p.is_logits, p.scale, p.bias, p.offset)
    prefix_survival(p.values, *calibration, p.slots, p.slots, False, None, None, None, p.survival, p.calibrated)
    if p.history is None:
        return [p.survival]
    old = torch.empty_like(p.survival)
    prefix_survival(
        p.history, *calibration, p.history_slots, p.slots, True, p.fresh, p.generation, p.expected, old, None
    )  # fmt: skip
    return [p.survival, old]


def _cut(p: Plan, keys: Tensor, totals: Tensor, n: int, chunks: int, blocks: int) -> Tensor:
    """Search if the budget is not given, decide, write the stats; returns the key of the cut and its admitted ties."""
    device = keys.device
    ordered = torch.sort(keys, dim=1, descending=True).values
    chunk_q, tau, full = (
        torch.empty((size, chunks), dtype=torch.int64, device=device) for size in (keys.shape[0], 1, 1)
    )
    t, b = torch.empty((2, chunks), dtype=torch.int32, device=device)
    best = (tau, t, b, full)
    cut = torch.empty(2, dtype=torch.int32, device=device)
    cost = (p.step_ns, rows(p.step_ns), p.base_ns, p.base_scalar)
    first_drop = p.search == FIRST_DROP
    sums_kernel[(chunks, keys.shape[0])](ordered, n, chunk_q, CHUNK=CHUNK)
    if not p.given:
        search_kernel[(chunks,)](
            ordered[-1], n, chunk_q[-1], totals[-1], blocks, *cost, p.max_rows, p.tiers, rows(p.tiers), *best,
            p.tier_tau, FIRST_DROP=first_drop, CHUNK=CHUNK, CHUNKS=CHUNKS, num_warps=8,
        )  # fmt: skip
    decide_kernel[(1,)](
        ordered, n, chunk_q, chunks, totals, totals[-1], blocks, p.budget, p.budget_scalar, *cost, p.max_rows,
        p.min_gain_ppm, p.tiers, rows(p.tiers), p.fill_tier, *best, cut, p.stats,
        GIVEN=p.given, FIRST_DROP=first_drop, CHUNK=CHUNK, CHUNKS=CHUNKS, PROBES=PROBES, num_warps=8,
    )  # fmt: skip
    return cut
