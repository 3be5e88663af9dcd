"""What is timed: for each operator our call, the rival's calls for the same result, and the check that they agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from timing import Call

import dspark_ops
from dspark_ops.cost import AdditiveTable, FloorTable

ROTATE = 8  # inputs taken in turn
Rival = SimpleNamespace | None


@dataclass(frozen=True)
class Case:
    """One line of the benchmark. `check` raises unless ours and the rival's results agree."""

    op: str
    batch: int
    gamma: int
    ours: Call
    rivals: dict[str, Call]
    check: Callable[[], None]
    bytes_moved: int = 0


def confidences(batch: int, gamma: int, seed: int) -> list[torch.Tensor]:
    """Different but alike inputs: most requests sure, some not."""
    g = torch.Generator().manual_seed(seed)
    return [torch.rand(batch, gamma, generator=g) ** 0.3 for _ in range(ROTATE)]


def tables(batch: int, width: int) -> dict[str, AdditiveTable | FloorTable]:
    """A cost that doubles over the rows, as both of the rival's table forms: linear, and in steps of 8 rows.

    Whole nanoseconds a row, so that the rival's float seconds and our int nanoseconds have the same best budget.
    """
    rows = batch * width
    slope = round(0.012 / rows, 9)
    probes = list(range(1, rows + 1, 8))
    return {
        "additive": AdditiveTable(0.01, [1, batch + 1], [0.0, 0.002], [1, rows], [slope, slope * rows]),
        "floor": FloorTable(probes, [1 / (0.012 + slope * m) for m in probes], rows),
    }


def equal(a: torch.Tensor, b: torch.Tensor, what: str) -> None:
    """Raise unless both hold the same numbers (dtypes may differ)."""
    if not torch.equal(a.to(torch.float64), b.to(torch.float64)):
        raise AssertionError(f"{what}: ours and the rival's results differ, so their times cannot be compared")


def allocate(batch: int, gamma: int, s: Rival, *, form: str, history: bool) -> Case:
    """Budget and lengths: the rival's budget planner on the host, then its top-k."""
    now, old = confidences(batch, gamma, 1), confidences(batch, gamma, 2)
    table = tables(batch, gamma + 1)[form]
    step_ns, base_ns = table.row(batch * (gamma + 1)), table.base(batch)
    out = dspark_ops.allocate_verify_lens(now[0], step_ns, base_ns, search="global")
    name = f"allocate_verify_lens{'+history' if history else ''} ({form})"

    def ours(i: int) -> dspark_ops.Plan:
        if history:
            return dspark_ops.allocate_verify_lens(now[i % ROTATE], step_ns, base_ns, history=old[i % ROTATE], out=out)
        return dspark_ops.allocate_verify_lens(now[i % ROTATE], step_ns, base_ns, search="global", out=out)

    if s is None:
        return Case(name, batch, gamma, ours, {}, lambda: None)
    kind = s.SpsAdditiveCostTable if form == "additive" else s.SpsCostTable
    theirs, cfg = kind.from_json(table.to_json()), s.DSparkScheduleConfig(gamma=gamma)

    def budget(survival: torch.Tensor) -> int:
        return s.compute_verify_token_budget(history_survival_probs=survival, sps_table=theirs, cfg=cfg).budget

    def rival(i: int) -> torch.Tensor:
        planned_on = s.compute_sort_survival((old if history else now)[i % ROTATE])
        return s.schedule_verify_lens_topk(confidence=now[i % ROTATE], budget=budget(planned_on), cfg=cfg)

    def check() -> None:
        # On the same survival bits: the rival's own product accumulates in double, which moves near ties.
        for i in range(ROTATE):
            plan = ours(i)
            planned_on = dspark_ops.prefix_survival(old[i]) if history else plan.survival
            lens = s.schedule_verify_lens_topk_from_survival(
                survival_probs=plan.survival, budget=budget(planned_on), cfg=cfg
            )
            equal(plan.verify_lens, lens, "allocate_verify_lens")

    return Case(name, batch, gamma, ours, {"SGLang": rival}, check)


def ragged(batch: int, gamma: int, s: Rival) -> Case:
    """Offsets, row map and verify ids of a compact step padded to a tier."""
    width, g = gamma + 1, torch.Generator().manual_seed(3)
    lens = [torch.randint(1, width + 1, (batch,), generator=g, dtype=torch.int32) for _ in range(ROTATE)]
    rows = batch * width
    roots = torch.randint(0, 50_000, (batch,), generator=g)
    drafts = torch.randint(0, 50_000, (batch, gamma), generator=g)
    prefix = torch.randint(1, 4096, (batch,), generator=g)
    out = dspark_ops.ragged_layout(lens[0], rows, prefix=prefix, root_tokens=roots, draft_tokens=drafts)

    def ours(i: int) -> Any:
        return dspark_ops.ragged_layout(
            lens[i % ROTATE], rows, prefix=prefix, root_tokens=roots, draft_tokens=drafts, out=out
        )

    rivals: dict[str, Call] = {}
    if s is not None:
        ids = torch.cat([roots[:, None], drafts], 1)

        def rival(i: int) -> Any:
            n = lens[i % ROTATE]
            indptr = s.build_qo_indptr(verify_lens=n).qo_indptr
            request, offset, valid = s.compact_row_index(verify_lens=n, padded_total=rows, device=n.device)
            safe = request.clamp(max=batch - 1)
            position = torch.where(valid, prefix[safe] + offset, 0)
            return indptr, offset, position, torch.where(valid, ids[safe, offset], 0)

        rivals["SGLang"] = rival

    def check() -> None:
        for rival in rivals.values():
            for i in range(ROTATE):
                mine, theirs = ours(i), rival(i)
                for a, b in zip(
                    (mine.cu_seqlens, mine.row_offset, mine.position, mine.verify_ids), theirs, strict=True
                ):
                    equal(a, b, "ragged_layout")

    return Case("ragged_layout", batch, gamma, ours, rivals, check)


def scatter(batch: int, gamma: int, s: Rival, *, dim: int) -> Case:
    """Compact rows back to B·N rows, bf16, beside a plain copy of as many bytes."""
    width, g = gamma + 1, torch.Generator().manual_seed(4)
    lens = torch.randint(1, width + 1, (batch,), generator=g, dtype=torch.int32)
    cu = torch.cat([torch.zeros(1, dtype=torch.int32), lens.cumsum(0, dtype=torch.int32)])
    compact = torch.randn(int(cu[-1]), dim, generator=g).bfloat16()
    out = torch.empty(batch * width, dim, dtype=torch.bfloat16)
    copy = torch.empty_like(out)

    def ours(i: int) -> Any:
        return dspark_ops.scatter_to_strided(compact, cu, width, out=out)

    rivals: dict[str, Call] = {"copy_": lambda i: copy.copy_(out)}
    if s is not None:
        layout = s.RaggedVerifyLayout.from_verify_lens(
            verify_lens_cpu=lens.tolist(), device=torch.device("cpu"), grid=[int(cu[-1])]
        )
        rivals["SGLang"] = lambda i: s.scatter_compact_to_strided(
            compact=compact, layout=layout, fill_value=0.0, verify_num_draft_tokens=width
        )

    def check() -> None:
        if "SGLang" in rivals:
            equal(ours(0), rivals["SGLang"](0), "scatter_to_strided")

    moved = 2 * out.numel() * out.element_size()
    return Case(f"scatter_to_strided bf16 D={dim}", batch, gamma, ours, rivals, check, moved)


def accept(batch: int, gamma: int, s: Rival) -> Case:
    """From an acceptance rule's lengths to everything the step commits."""
    width, g = gamma + 1, torch.Generator().manual_seed(5)
    lens = torch.randint(1, width + 1, (batch,), generator=g, dtype=torch.int32)
    raw = [torch.randint(0, gamma + 1, (batch,), generator=g, dtype=torch.int32) for _ in range(ROTATE)]
    drafts, bonus = torch.randint(0, 9999, (batch, gamma), generator=g), torch.randint(0, 9999, (batch,), generator=g)
    prefix = torch.randint(1, 4096, (batch,), generator=g)
    out = dspark_ops.finalize_accept(raw[0], drafts, lens, prefix, bonus=bonus)

    def ours(i: int) -> Any:
        return dspark_ops.finalize_accept(raw[i % ROTATE], drafts, lens, prefix, bonus=bonus, out=out)

    rivals: dict[str, Call] = {}
    if s is not None:

        def rival(i: int) -> Any:
            correct, trim = s.cap_correct_len(correct_len=raw[i % ROTATE], verify_lens=lens)
            done = s.finalize_accept_lens(correct_len=correct, cap_trim_lens=trim, prefix_lens=prefix)
            tokens = s.build_out_tokens(
                draft_tokens=drafts, correct_len=correct, bonus=bonus, verify_num_draft_tokens=width, gamma=gamma
            )
            return correct, done.cap_trim_lens, done.commit_lens, done.new_seq_lens, tokens

        rivals["SGLang"] = rival

    def check() -> None:
        for rival in rivals.values():
            for i in range(ROTATE):
                m = ours(i)
                mine = (m.correct_len, m.trimmed, m.commit_len, m.new_seq_len, m.out_tokens)
                for a, b in zip(mine, rival(i), strict=True):
                    equal(a, b, "finalize_accept")

    return Case("finalize_accept", batch, gamma, ours, rivals, check)


def cases(batch: int, gamma: int, s: Rival) -> Iterator[Case]:
    """Every case at one size."""
    for history in (False, True):
        for form in ("additive", "floor"):
            yield allocate(batch, gamma, s, form=form, history=history)
    yield ragged(batch, gamma, s)
    yield accept(batch, gamma, s)
    for dim in (1, 4096):
        yield scatter(batch, gamma, s, dim=dim)
