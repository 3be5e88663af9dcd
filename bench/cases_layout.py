"""Benchmark of the layout, compressor, state and move operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from case import ROTATE, Case, Rival, all_equal, cumulative, equal, random, verify_lens

import dspark_ops


def ragged(batch: int, gamma: int, s: Rival) -> Case:
    """Offsets, row map, positions and verify ids of a compact step, padded to all rows."""
    width, g = gamma + 1, random(3)
    lens, rows = verify_lens(batch, width, 4), batch * width
    roots = torch.randint(0, 50_000, (batch,), generator=g)
    drafts = torch.randint(0, 50_000, (batch, gamma), generator=g)
    prefix = torch.randint(1, 4096, (batch,), generator=g)
    out = dspark_ops.ragged_layout(lens[0], rows, prefix=prefix, root_tokens=roots, draft_tokens=drafts)

    def ours(i: int) -> Any:
        return dspark_ops.ragged_layout(
            lens[i % ROTATE], rows, prefix=prefix, root_tokens=roots, draft_tokens=drafts, out=out
        )

    if s is None:
        return Case("ragged_layout", batch, gamma, ours)
    ids = torch.cat([roots[:, None], drafts], 1)

    def rival(i: int) -> Any:
        n = lens[i % ROTATE]
        indptr = s.build_qo_indptr(verify_lens=n).qo_indptr
        request, offset, valid = s.compact_row_index(verify_lens=n, padded_total=rows, device=n.device)
        safe = request.clamp(max=batch - 1)
        position = torch.where(valid, prefix[safe] + offset, 0)
        return indptr, offset, position, torch.where(valid, ids[safe, offset], 0)

    def check() -> None:
        all_equal(
            ours, rival, lambda r: (r.cu_seqlens, r.row_offset, r.position, r.verify_ids), "ragged_layout"
        )  # fmt: skip

    return Case("ragged_layout", batch, gamma, ours, {"SGLang": rival}, check)


def pad(batch: int, gamma: int, s: Rival) -> Case:
    """Lengths padded to a captured graph's rows and slots."""
    lens, rows, slots = verify_lens(batch, gamma + 1, 5), batch * (gamma + 1), batch + batch // 4
    out = dspark_ops.pad_to_bucket(lens[0], rows, slots)

    def ours(i: int) -> Any:
        return dspark_ops.pad_to_bucket(lens[i % ROTATE], rows, slots, out=out)

    if s is None:
        return Case("pad_to_bucket", batch, gamma, ours)

    def rival(i: int) -> Any:
        n = lens[i % ROTATE]
        return (s.pad_verify_lens_to_bucket(verify_lens=n, graph_num_tokens=rows, bs=batch, padded_bs=slots),)

    return Case(
        "pad_to_bucket", batch, gamma, ours, {"SGLang": rival},
        lambda: all_equal(ours, rival, lambda r: (r[0],), "pad_to_bucket"),
    )  # fmt: skip


def token_maps(slots: int, context: int, g: torch.Generator) -> dict[str, Any]:
    """Tokens of each slot in pages of 128 that lie anywhere, and the sliding-window index of each token."""
    pages = slots * (context // 128 + 1)
    tokens = torch.randperm(pages, generator=g)[:, None] * 128 + torch.arange(128)
    return {
        "req_to_token": tokens.reshape(slots, -1)[:, :context].int().contiguous(),
        "full_to_swa": (torch.randperm(pages, generator=g)[:, None] * 128 + torch.arange(128)).flatten(),
        "swa_page": 128,
    }


def compressor(batch: int, gamma: int) -> Iterator[Case]:
    """C4 and C128 in one call, the state tables in both forms, the safe lengths: no rival has them for ragged rows."""
    width, g = gamma + 1, random(6)
    lens = verify_lens(batch, width, 7)
    cu = [cumulative(n) for n in lens]
    start = torch.randint(0, 8192, (batch,), generator=g, dtype=torch.int32)
    pages = torch.randint(0, 4096, (batch, 64), generator=g, dtype=torch.int32)
    tables = [dspark_ops.CompressorTable(4, pages, 64), dspark_ops.CompressorTable(128, pages, 64)]
    rows = batch * width
    layout = dspark_ops.compressor_layout(cu[0], lens[0], start, rows, tables)
    slots = torch.arange(batch, dtype=torch.int32)
    ring = dspark_ops.state_rows(cu[0], lens[0], start, slots, 128, 1, 256, width, -1)
    blocks = dspark_ops.state_blocks(pages, lens[0], start, 4, 2, 128)
    paged = torch.empty(batch, 8 + width, dtype=torch.int32)
    maps = token_maps(batch, 8192 + width, g)
    safe = torch.empty_like(start)

    def ours_layout(i: int) -> Any:
        k = i % ROTATE
        return dspark_ops.compressor_layout(cu[k], lens[k], start, rows, tables, out=layout)

    def ours_rows(i: int) -> Any:
        k = i % ROTATE
        return dspark_ops.state_rows(cu[k], lens[k], start, slots, 128, 1, 256, width, -1, out=ring)

    def ours_paged(i: int) -> Any:
        k = i % ROTATE
        return dspark_ops.state_rows(cu[k], lens[k], start, slots, 4, 2, 16, width, -1, **maps, out=paged)

    yield Case("compressor_layout C4+C128", batch, gamma, ours_layout)
    yield Case("state_rows C128", batch, gamma, ours_rows)
    yield Case("state_rows C4", batch, gamma, ours_paged)
    yield Case(
        "state_blocks C4", batch, gamma,
        lambda i: dspark_ops.state_blocks(pages, lens[i % ROTATE], start, 4, 2, 128, out=blocks),
    )  # fmt: skip
    yield Case(
        "max_safe_verify_len", batch, gamma, lambda i: dspark_ops.max_safe_verify_len(start, 4, 2, width, out=safe)
    )


def move(batch: int, gamma: int, s: Rival, *, dim: int) -> Iterator[Case]:
    """Compact rows to B·N rows and back, bf16, beside a plain copy that moves as many bytes.

    Scatter reads the Σ l compact rows and writes all B·N; gather reads and writes Σ l. A copy of n bytes moves 2n.
    """
    width = gamma + 1
    lens = verify_lens(batch, width, 8)[0]
    cu, total = cumulative(lens), int(lens.sum())
    compact = torch.randn(total, dim, generator=random(9)).bfloat16()
    strided, back = torch.empty(batch * width, dim, dtype=torch.bfloat16), torch.empty_like(compact)
    row_bytes = dim * compact.element_size()
    scattered, gathered = (total + batch * width) * row_bytes, 2 * total * row_bytes

    def copy(bytes_moved: int) -> Any:
        source = torch.zeros(bytes_moved // 2, dtype=torch.uint8)
        target = torch.empty_like(source)
        return lambda i: target.copy_(source)

    def scatter(i: int) -> Any:
        return dspark_ops.scatter_to_strided(compact, cu, width, out=strided)

    def gather(i: int) -> Any:
        return dspark_ops.gather_from_strided(strided, cu, total, out=back)

    rivals = {"copy_": copy(scattered)}
    if s is not None:
        layout = s.RaggedVerifyLayout.from_verify_lens(
            verify_lens_cpu=lens.tolist(), device=torch.device("cpu"), grid=[total]
        )
        rivals["SGLang"] = lambda i: s.scatter_compact_to_strided(
            compact=compact, layout=layout, fill_value=0.0, verify_num_draft_tokens=width
        )

    def check() -> None:
        if "SGLang" in rivals:
            equal(scatter(0), rivals["SGLang"](0), "scatter_to_strided")

    yield Case(f"scatter_to_strided bf16 D={dim}", batch, gamma, scatter, rivals, check, bytes_moved=scattered)
    yield Case(
        f"gather_from_strided bf16 D={dim}", batch, gamma, gather, {"copy_": copy(gathered)},
        lambda: (scatter(0), equal(gather(0), compact, "gather_from_strided"))[-1], bytes_moved=gathered,
    )  # fmt: skip


def cases(batch: int, gamma: int, s: Rival) -> Iterator[Case]:
    """Every case at one size."""
    yield ragged(batch, gamma, s)
    yield pad(batch, gamma, s)
    yield from compressor(batch, gamma)
    for dim in (1, 4096):
        yield from move(batch, gamma, s, dim=dim)
