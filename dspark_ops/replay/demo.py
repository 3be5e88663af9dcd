"""Replays recorded decode steps through the operators: what static, cap-accept and compact verification would give.

The simulation resamples steps: each request takes its recorded steps in order, whatever a policy commits of them, so
every policy sees the same steps, drafts and confidences. It compares policies; it does not claim equal text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..cost.cells import CostCells
from ..ops.accept_greedy import Accepted, accept_greedy
from ..ops.allocate_verify_lens import Plan, allocate_verify_lens
from ..ops.ragged_layout import ragged_layout
from ..trace import Array, Trace

HEADS = ("z_refit", "z")
SEARCHES = ("history", "first_drop")
Q43 = 2.0**43

NOTE = (
    "step resampling: each request takes its recorded steps in order, whatever is committed; a request that ends hands "
    "its slot to the next of the trace; the replay stops when fewer than B remain; text equality is not claimed"
)


class Violation(RuntimeError):
    """The operators disagree with each other or with the trace: the replay's figures would be worth nothing."""


@dataclass(frozen=True)
class Options:
    """How to replay. `search="history"`: budget from the slot's previous step, current confidences only rank."""

    batch: int = 16
    head: str = "z_refit"
    search: str = "history"
    temperature: float = 1.0
    max_steps: int | None = None

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"batch: expected at least 1, got {self.batch}")
        if self.head not in HEADS:
            raise ValueError(f"head: expected one of {', '.join(HEADS)}, got {self.head!r}")
        if self.search not in SEARCHES:
            raise ValueError(f"search: expected one of {', '.join(SEARCHES)}, got {self.search!r}")
        if not 1e-3 <= self.temperature <= 1e3:
            raise ValueError(f"temperature: expected a number in [0.001, 1000], got {self.temperature}")
        if self.max_steps is not None and self.max_steps < 1:
            raise ValueError(f"steps: expected at least 1, got {self.max_steps}")


@dataclass(frozen=True)
class Step:
    """What B requests bring to one verify step, as recorded. Tokens are int64, N = γ + 1."""

    logits: Tensor  # float32 [B, γ]
    history: Tensor  # float32 [B, γ], the logits of the slot's previous step
    fresh: Tensor  # bool [B]; False at a request's first step
    root_tokens: Tensor  # [B]
    draft_tokens: Tensor  # [B, γ]
    target_tokens: Tensor  # [B, N]
    prefix: Tensor  # int64 [B], the root excluded
    correct_len: Tensor  # int32 [B], what the trace recorded
    bonus: Tensor  # [B], likewise


@dataclass
class Totals:
    """One policy's sums over the replay."""

    policy: str
    requests: int = 0  # request-steps
    rows: int = 0
    tokens: int = 0
    predicted_tau: float = 0.0
    seconds: float = 0.0

    def add(self, requests: int, rows: int, tokens: int, predicted_tau: float, step_ns: Tensor) -> None:
        """Count one step that verified `rows` rows and committed `tokens` tokens."""
        self.requests += requests
        self.rows += rows
        self.tokens += tokens
        self.predicted_tau += predicted_tau
        self.seconds += int(step_ns[rows]) * 1e-9

    @property
    def tokens_per_second(self) -> float:
        """Committed tokens per simulated second."""
        return self.tokens / self.seconds

    def summary(self, steps: int, static: Totals) -> dict[str, Any]:
        """The figures of a report; accept_length counts the bonus token."""
        return {
            "policy": self.policy,
            "steps": steps,
            "rows_verified": self.rows,
            "tokens_committed": self.tokens,
            "accept_length": self.tokens / self.requests,
            "predicted_tau": self.predicted_tau / steps,
            "actual_tau": self.tokens / steps,
            "seconds": self.seconds,
            "tokens_per_second": self.tokens_per_second,
            "ratio_to_static": self.tokens_per_second / static.tokens_per_second,
        }


def step_rows(trace: Trace, batch: int, max_steps: int | None = None) -> Array:
    """Trace row of every slot at every step, int64 [steps, B]; ends when a slot has no request left to take."""
    starts = trace.request_starts
    if batch > len(starts):
        raise ValueError(f"batch: expected at most the {len(starts)} requests of the trace, got {batch}")
    ends = np.append(starts[1:], len(trace.step))
    rows, last, waiting = starts[:batch].copy(), ends[:batch].copy(), batch
    steps: list[Array] = []
    while max_steps is None or len(steps) < max_steps:
        steps.append(rows.copy())
        rows += 1
        for slot in np.flatnonzero(rows == last):
            if waiting == len(starts):
                return np.stack(steps)
            rows[slot], last[slot] = starts[waiting], ends[waiting]
            waiting += 1
    return np.stack(steps)


def steps_of(trace: Trace, rows: Array, head: str) -> Iterator[Step]:
    """The recorded inputs of each step of `rows` [steps, B]."""
    logits = torch.from_numpy(getattr(trace, head))
    root, draft, target, bonus = (
        torch.from_numpy(a.astype(np.int64))
        for a in (trace.anchor_token, trace.draft_tokens, trace.target_argmax, trace.bonus_token)
    )
    prefix = torch.from_numpy(trace.prefix_len.astype(np.int64)) - 1
    correct = torch.from_numpy(trace.correct_len.astype(np.int32))
    fresh = torch.from_numpy(trace.step > 0)
    for index in torch.from_numpy(rows):
        yield Step(
            logits=logits[index],
            history=logits[(index - 1).clamp(min=0)],
            fresh=fresh[index],
            root_tokens=root[index],
            draft_tokens=draft[index],
            target_tokens=target[index],
            prefix=prefix[index],
            correct_len=correct[index],
            bonus=bonus[index],
        )


def plan_step(step: Step, step_ns: Tensor, options: Options) -> Plan:
    """The plan of one step. It depends on recorded logits only, so every policy gets the same one."""
    scale = torch.full((step.logits.shape[1],), 1.0 / options.temperature)
    if options.search == "first_drop":
        return allocate_verify_lens(step_ns=step_ns, logits=step.logits, scale=scale, search="first_drop")
    return allocate_verify_lens(
        step_ns=step_ns, logits=step.logits, scale=scale, history=step.history, fresh=step.fresh
    )


def accept_static(step: Step) -> Accepted:
    """Verify all N rows of every request and accept without a cut; must commit what the trace recorded."""
    batch, width = step.target_tokens.shape
    accepted = accept_greedy(
        step.draft_tokens, step.target_tokens, torch.full((batch,), width, dtype=torch.int32), step.prefix
    )
    correct = step.correct_len.long()[:, None]
    recorded = torch.cat([step.draft_tokens, step.bonus[:, None]], 1).scatter(1, correct, step.bonus[:, None])
    committed = torch.arange(width) <= correct
    for name, got, want in (
        ("correct_len", accepted.correct_len, step.correct_len),
        ("bonus", accepted.bonus, step.bonus),
        ("commit_len", accepted.commit_len, step.correct_len + 1),
        ("new_seq_len", accepted.new_seq_len, step.prefix + step.correct_len + 1),
        ("committed tokens", accepted.out_tokens[committed], recorded[committed]),
    ):
        _same("static and the trace", name, got, want)
    return accepted


def accept_capped(step: Step, plan: Plan) -> Accepted:
    """Cap-accept: all N rows are verified, at most l - 1 drafts accepted."""
    return accept_greedy(step.draft_tokens, step.target_tokens, plan.verify_lens, step.prefix)


def accept_compact(step: Step, plan: Plan) -> Accepted:
    """Compact: build the ragged verify step, let the target answer its rows only, and accept from those."""
    rows = int(plan.stats[1])
    layout = ragged_layout(
        plan.verify_lens, rows, prefix=step.prefix, root_tokens=step.root_tokens, draft_tokens=step.draft_tokens
    )
    request, offset = layout.row_request.long(), layout.row_offset.long()
    _same("the layout and the plan", "cu_seqlens", layout.cu_seqlens, plan.cu_seqlens)
    inputs = torch.cat([step.root_tokens[:, None], step.draft_tokens], 1)
    _same("the layout and the trace", "verify_ids", layout.verify_ids, inputs[request, offset])
    _same("the layout and the trace", "position", layout.position, step.prefix[request] + offset)
    return accept_greedy(
        step.draft_tokens,
        step.target_tokens[request, offset],
        plan.verify_lens,
        step.prefix,
        cu_seqlens=layout.cu_seqlens,
    )


def _same(who: str, name: str, got: Tensor | None, want: Tensor | None) -> None:
    assert got is not None and want is not None
    if not torch.equal(got, want):
        raise Violation(f"{who} differ in {name}: {got.tolist()} and {want.tolist()}")


def check_same_commit(compact: Accepted, capped: Accepted) -> None:
    """Raise Violation unless compact and cap-accept, for one plan, commit the same tokens."""
    for name in ("correct_len", "commit_len", "bonus", "new_seq_len", "out_tokens"):
        _same("compact and cap-accept", name, getattr(compact, name), getattr(capped, name))


def best_fixed(correct_len: Tensor, batch: int, width: int, step_ns: Tensor) -> dict[str, Any]:
    """The best common verify length in hindsight: what a plan has to beat. correct_len [steps, B]."""
    rates = []
    for length in range(1, width + 1):
        tokens = int((correct_len.clamp(max=length - 1) + 1).sum())
        rates.append(tokens / (len(correct_len) * int(step_ns[batch * length]) * 1e-9))
    best = max(range(width), key=rates.__getitem__)
    return {"verify_len": best + 1, "tokens_per_second": rates[best]}


def replay(
    trace: Trace, cells: CostCells, options: Options, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Replay the trace; returns the report as plain data (see `Totals.summary` for a policy's figures).

    Seconds are simulated: the measured cost of the rows that a policy verifies, at the measured bs nearest to B.

    Raises ValueError for options that do not fit the trace, Violation when the operators break a promise.
    """
    if not np.array_equal(trace.correct_len, trace.argmax_prefix_len):
        raise ValueError("trace: expected a greedy trace, where correct_len equals argmax_prefix_len everywhere")
    batch, width = options.batch, trace.gamma + 1
    rows = step_rows(trace, batch, options.max_steps)
    step_ns = cells.step_ns(batch, batch * width)
    static, capped, compact = Totals("static"), Totals("cap-accept"), Totals("compact")
    for done, step in enumerate(steps_of(trace, rows, options.head), 1):
        plan = plan_step(step, step_ns, options)
        planned_tau = int(plan.stats[3]) / Q43
        by_static, by_cap, by_compact = accept_static(step), accept_capped(step, plan), accept_compact(step, plan)
        check_same_commit(by_compact, by_cap)
        full_tau = batch + float(plan.survival.double().sum())
        static.add(batch, batch * width, int(by_static.commit_len.sum()), full_tau, step_ns)
        capped.add(batch, batch * width, int(by_cap.commit_len.sum()), planned_tau, step_ns)
        compact.add(batch, int(plan.stats[1]), int(by_compact.commit_len.sum()), planned_tau, step_ns)
        if progress is not None:
            progress(done, len(rows))
    fixed = best_fixed(torch.from_numpy(trace.correct_len[rows].astype(np.int64)), batch, width, step_ns)
    return {
        "options": asdict(options),
        "gamma": trace.gamma,
        "steps": len(rows),
        "recorded_steps_used": int(rows.size),
        "recorded_steps": len(trace.step),
        "cost_bs": cells.nearest(batch),
        "cost_measured_rows": cells.measured_rows(batch),
        "policies": [totals.summary(len(rows), static) for totals in (static, capped, compact)],
        "best_fixed": fixed | {"ratio_to_static": fixed["tokens_per_second"] / static.tokens_per_second},
        "checks": f"{len(rows)} steps: compact and cap-accept commit the same tokens, static what the trace recorded",
        "note": NOTE,
    }
