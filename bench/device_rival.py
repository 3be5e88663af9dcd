"""Our operators and SGLang's Triton functions for the same results, on one device, for `device.py`.

Each pair is checked before it is timed. Confidences are multiples of 1/4, so that every survival is exact in float32
and the order in which a product is taken cannot matter: both must choose the same lengths.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import rival
import torch
from case import equal
from cases_planning import tables
from device_cases import Draw
from device_timing import Call

import dspark_ops


@dataclass(frozen=True)
class Pair:
    """What is compared, ours, the rival's calls for the same result, and the check that they agree."""

    what: str
    ours: Call
    rival: Call
    check: Callable[[], None]


def _check(what: str, ours: Call, rival: Call) -> Callable[[], None]:
    def check() -> None:
        for a, b in zip(ours(), rival(), strict=True):
            equal(a.cpu(), b.cpu(), what)

    return check


def lengths(d: Draw, device: str, s: SimpleNamespace) -> Pair:
    """Lengths for a given budget, ours as one fused launch with the layout's offsets."""
    confidence = (d.ints(1, 4, d.batch, d.gamma) / 4).to(device)
    budget = d.batch * d.gamma // 2
    cfg = s.DSparkScheduleConfig(gamma=d.gamma)
    out = dspark_ops.allocate_verify_lens(confidence, budget=budget)

    def ours() -> Any:
        return (dspark_ops.allocate_verify_lens(confidence, budget=budget, out=out).verify_lens,)

    def rival() -> Any:
        return (s.schedule_verify_lens_topk_triton(confidence=confidence, budget=budget, cfg=cfg),)

    return Pair("lengths for a budget", ours, rival, _check("lengths", ours, rival))


def layout(d: Draw, device: str, s: SimpleNamespace) -> Pair:
    """Offsets, row map, verify ids."""
    lens, rows = d.lens().to(device), d.batch * d.width
    roots = d.ints(0, 9999, d.batch, dtype=torch.int64).to(device)
    drafts = d.ints(0, 9999, d.batch, d.gamma, dtype=torch.int64).to(device)
    blocks = roots[:, None].expand(-1, d.gamma).contiguous()
    theirs = SimpleNamespace(verify_lens=lens, graph_num_tokens=rows)
    out = dspark_ops.ragged_layout(lens, rows, root_tokens=roots, draft_tokens=drafts)

    def ours() -> Any:
        got = dspark_ops.ragged_layout(lens, rows, root_tokens=roots, draft_tokens=drafts, out=out)
        return got.cu_seqlens, got.row_offset, got.verify_ids

    def rival() -> Any:
        indptr = s.build_qo_indptr_triton(verify_lens=lens).qo_indptr
        _, offset, _ = s.compact_row_index_triton(verify_lens=lens, padded_total=rows, device=device)
        ids = s.compact_verify_ids_triton(draft_block_ids=blocks, draft_tokens=drafts, layout=theirs, device=device)
        return indptr, offset, ids

    return Pair("offsets, row map, verify ids", ours, rival, _check("layout", ours, rival))


def padding(d: Draw, device: str, s: SimpleNamespace) -> Pair:
    lens, rows, slots = d.lens().to(device), d.batch * d.width, d.batch + d.batch // 4
    out = dspark_ops.pad_to_bucket(lens, rows, slots)

    def ours() -> Any:
        return (dspark_ops.pad_to_bucket(lens, rows, slots, out=out).padded,)

    def rival() -> Any:
        return (
            s.pad_verify_lens_to_bucket_triton(verify_lens=lens, graph_num_tokens=rows, bs=d.batch, padded_bs=slots),
        )

    return Pair("bucket padding", ours, rival, _check("padding", ours, rival))


def scatter(d: Draw, device: str, s: SimpleNamespace, columns: int) -> Pair:
    lens = d.lens()
    cu, lens = d.cu_seqlens(lens).to(device), lens.to(device)
    compact = torch.randn(d.batch * d.width, columns, generator=d.g).bfloat16().to(device)
    theirs = SimpleNamespace(verify_lens=lens, graph_num_tokens=compact.shape[0])
    out = torch.empty_like(compact)

    def ours() -> Any:
        return (dspark_ops.scatter_to_strided(compact, cu, d.width, out=out),)

    def rival() -> Any:
        return (
            s.scatter_compact_to_strided_triton(
                compact=compact, layout=theirs, fill_value=0.0, verify_num_draft_tokens=d.width
            ),
        )

    return Pair(f"scatter bf16 D={columns}", ours, rival, _check("scatter", ours, rival))


def accept(d: Draw, device: str, s: SimpleNamespace) -> Pair:
    """From an acceptance rule's lengths to all that a step commits."""
    lens, raw = d.lens().to(device), d.ints(0, d.gamma, d.batch).to(device)
    drafts = d.ints(0, 9999, d.batch, d.gamma, dtype=torch.int64).to(device)
    bonus, prefix = (d.ints(1, 4096, d.batch, dtype=torch.int64).to(device) for _ in range(2))
    out = dspark_ops.finalize_accept(raw, drafts, lens, prefix, bonus=bonus)

    def ours() -> Any:
        m = dspark_ops.finalize_accept(raw, drafts, lens, prefix, bonus=bonus, out=out)
        return m.correct_len, m.trimmed, m.commit_len, m.new_seq_len, m.out_tokens

    def rival() -> Any:
        correct, trim = s.cap_correct_len_triton(correct_len=raw, verify_lens=lens)
        done = s.finalize_accept_lens_triton(correct_len=correct, cap_trim_lens=trim, prefix_lens=prefix)
        tokens = s.build_out_tokens_triton(
            draft_tokens=drafts, correct_len=correct, bonus=bonus, verify_num_draft_tokens=d.width, gamma=d.gamma
        )
        return correct, done.cap_trim_lens, done.commit_lens, done.new_seq_lens, tokens

    return Pair("finish acceptance", ours, rival, _check("accept", ours, rival))


def pairs(batch: int, gamma: int, device: str, s: SimpleNamespace) -> Iterator[Pair]:
    """Every pair at one size."""
    for build in (lengths, layout, padding, accept):
        yield build(Draw(batch, gamma, 11), device, s)
    for columns in (1, 4096):
        yield scatter(Draw(batch, gamma, 11), device, s, columns)


def host_plan(batch: int, gamma: int, device: str, s: SimpleNamespace) -> tuple[Call, Call]:
    """The whole decision of a step as a wall-clock call, device idle at its end: ours, and the rival's.

    The rival copies the confidences to the host, finds the budget there, and then launches its top-k. Ours is a launch.
    """
    d = Draw(batch, gamma, 12)
    confidence = (d.ints(1, 4, batch, gamma) / 4).to(device)
    table = tables(batch, gamma + 1)["additive"]
    theirs = s.SpsAdditiveCostTable.from_json(table.to_json())
    cfg = s.DSparkScheduleConfig(gamma=gamma)
    row, base = table.row(batch * (gamma + 1)).to(device), table.base(batch)
    out = dspark_ops.allocate_verify_lens(confidence, row, base, search="global")

    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    def ours() -> Any:
        plan = dspark_ops.allocate_verify_lens(confidence, row, base, search="global", out=out)
        wait()
        return plan.verify_lens

    def rival() -> Any:
        survival = s.compute_sort_survival(confidence.cpu())
        budget = s.compute_verify_token_budget(history_survival_probs=survival, sps_table=theirs, cfg=cfg).budget
        lens = s.schedule_verify_lens_topk_triton(confidence=confidence, budget=budget, cfg=cfg)
        wait()
        return lens

    return ours, rival


def pack(file: Path) -> None:
    """Put the few files of the rival that are run into a small archive, for a machine that cannot download it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(rival._wheel()) as wheel, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as small:
        for name in sorted(rival.REAL):
            path = f"{name.replace('.', '/')}.py"
            small.writestr(path, wheel.read(path))
