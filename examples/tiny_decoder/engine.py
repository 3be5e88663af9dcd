"""The decode loop: admit, draft, plan, verify, accept, commit. What a serving runtime does each step, in miniature."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import dspark_ops
from dspark_ops import Plan

from .cache import Cache
from .draft import Draft, MarkovDraft
from .model import Model
from .sampling import accept_sampled
from .step import make_step

MODES = ("plain", "static", "cap_accept", "compact")


@dataclass(frozen=True)
class Request:
    prompt: list[int]
    max_new: int


@dataclass(frozen=True)
class Options:
    """How to decode. `graphs` maps the rows of a captured graph to its request slots; none: every step is eager."""

    mode: str = "compact"
    search: str = "history"  # or first_drop, global
    state: str = "blocks"  # or rows: the explicit form, whose verify lengths must be bounded
    bound_lens: bool = True  # by max_safe_verify_len, in the explicit form
    graphs: dict[int, int] = field(default_factory=dict)
    fill_tier: bool = False
    plan_group: int | None = None  # slots per plan; None: one plan for all, as a runtime does
    arrivals: int | None = None  # requests that arrive per step; None: all are there from the start
    seed: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode: expected one of {', '.join(MODES)}, got {self.mode!r}")


@dataclass
class Totals:
    steps: int = 0
    rows_verified: int = 0  # with a real token
    rows_padded: int = 0
    proposed: int = 0
    accepted: int = 0
    committed: int = 0
    graph_steps: int = 0


class Engine:
    """Decodes requests with one of four modes; the tokens do not depend on which."""

    def __init__(self, model: Model, draft: MarkovDraft, step_ns: Tensor, options: Options) -> None:
        self.model, self.draft, self.options, self.step_ns = model, draft, options, step_ns
        config = model.config
        self.config, self.width = config, config.gamma + 1
        self.cache = Cache(config, options.state)
        self.totals = Totals()
        self.tiers = torch.tensor(sorted(options.graphs), dtype=torch.int32) if options.graphs else None
        self._random = torch.Generator().manual_seed(options.seed)
        slots = config.slots
        self._owner: list[int | None] = [None] * slots
        self._left = torch.zeros(slots, dtype=torch.int32)  # tokens that the request still wants; 0 marks an idle slot
        self._length = torch.zeros(slots, dtype=torch.int64)  # committed tokens, the root excluded
        self._root = torch.zeros(slots, dtype=torch.int64)
        self._generation = torch.zeros(slots, dtype=torch.int64)  # counts the requests that the slot has served
        self._history = torch.zeros(slots, config.gamma)
        self._history_generation = torch.zeros(slots, dtype=torch.int64)

    def run(self, requests: list[Request]) -> list[list[int]]:
        """The new tokens of every request."""
        waiting, arrived = deque(enumerate(requests)), 0
        outputs: list[list[int]] = [[] for _ in requests]
        while waiting or bool(self._left.any()):
            arrived = len(requests) if self.options.arrivals is None else arrived + self.options.arrivals
            self._admit(waiting, min(arrived, len(requests)))
            if bool(self._left.any()):
                self._decode(outputs)
        return outputs

    def _admit(self, waiting: deque[tuple[int, Request]], arrived: int) -> None:
        new = []
        for slot, owner in enumerate(self._owner):
            if owner is not None or not waiting or waiting[0][0] >= arrived:
                continue
            index, request = waiting.popleft()
            self.cache.acquire(slot, len(request.prompt) + request.max_new)
            self._owner[slot] = index
            self._generation[slot] += 1
            self._left[slot] = request.max_new
            self._root[slot] = request.prompt[-1]
            new.append((slot, request.prompt))
        if new:
            self._prefill(new)

    def _prefill(self, new: list[tuple[int, list[int]]]) -> None:
        """All tokens but the root, in one eager step that everything accepts."""
        longest = max(2, *(len(prompt) for _, prompt in new))
        ids = torch.zeros(self.config.slots, longest, dtype=torch.int64)
        lens = torch.zeros(self.config.slots, dtype=torch.int32)
        for slot, prompt in new:
            ids[slot, : len(prompt)] = torch.tensor(prompt)
            lens[slot] = len(prompt) - 1
        rows = int(lens.sum())
        start = torch.where(lens > 0, 0, self._length)
        self.model(make_step(self.cache, lens, lens, rows, start, ids[:, 0], ids[:, 1:]), self.cache)
        for slot, prompt in new:
            self._length[slot] = len(prompt) - 1

    def _decode(self, outputs: list[list[int]]) -> None:
        draft = self.draft(self._root, self._random)
        caps = self._caps()
        plan = self._plan(draft, caps)
        lens = plan.verify_lens if self.options.mode in ("compact", "cap_accept") else caps
        accepted = self._verify(draft, lens, lens if self.options.mode == "compact" else caps, int(plan.stats[2]))
        self._history.copy_(torch.where((caps > 0)[:, None], draft.logits, self._history))
        self._history_generation.copy_(torch.where(caps > 0, self._generation, self._history_generation))
        self._commit(accepted, lens, outputs)

    def _caps(self) -> Tensor:
        """Most rows of each request: what it still wants, and what is safe for its state; 0 for an idle slot."""
        caps = self._left.clamp(max=1 if self.options.mode == "plain" else self.width)
        if self.options.state == "rows" and self.options.bound_lens:
            for layer in self.cache.layers:
                safe = dspark_ops.max_safe_verify_len(
                    self._length, layer.ratio, layer.coff, self.width, ring=layer.ring_rows
                )
                caps = torch.minimum(caps, safe)
        return caps

    def _plan(self, draft: Draft, caps: Tensor) -> Plan:
        group = self.options.plan_group or self.config.slots
        plans = [self._plan_slots(draft, caps, slice(a, a + group)) for a in range(0, self.config.slots, group)]
        if len(plans) == 1:
            return plans[0]
        lens = torch.cat([plan.verify_lens for plan in plans])
        return plans[0]._replace(verify_lens=lens, stats=torch.full((5,), -1))

    def _plan_slots(self, draft: Draft, caps: Tensor, part: slice) -> Plan:
        budget: dict[str, Any] = {"search": self.options.search}
        if self.options.search == "history":
            budget = {
                "history": self._history[part],
                "generation": self._history_generation[part],
                "expected": self._generation[part],
            }
        return dspark_ops.allocate_verify_lens(
            logits=draft.logits[part].contiguous(),
            step_ns=self.step_ns,
            caps=caps[part],
            tiers=self.tiers,
            fill_tier=self.options.fill_tier,
            **budget,
        )

    def _verify(self, draft: Draft, lens: Tensor, verified: Tensor, tier: int) -> dspark_ops.Accepted:
        """Run the target on `verified` rows per request and accept no more than `lens` allow."""
        compact = self.options.mode == "compact"
        graph = compact and tier in self.options.graphs
        rows, slots = (tier, self.options.graphs[tier]) if graph else (int(verified.sum()), len(lens))
        padded = dspark_ops.pad_to_bucket(verified, rows, slots, cap=self.width)
        more = slots - len(lens)
        start, root = (torch.cat([t, t.new_zeros(more)]) for t in (self._length, self._root))
        tokens = torch.cat([draft.tokens, draft.tokens.new_zeros(more, self.config.gamma)])
        step = make_step(self.cache, padded.padded, padded.seqused, rows, start, root, tokens)
        logits = self.model(step, self.cache)
        offsets = step.layout.cu_seqlens[: len(lens) + 1]  # of the very lengths that were run: the one source
        self._count(lens, int(verified.sum()), rows, graph)
        if self.draft.sampled:
            strided = dspark_ops.scatter_to_strided(logits, offsets, self.width).view(len(lens), self.width, -1)
            return accept_sampled(strided, draft, lens, self._length, self._random)
        if compact:
            target = logits.argmax(-1)
            return dspark_ops.accept_greedy(draft.tokens, target, lens, self._length, cu_seqlens=offsets)
        target = dspark_ops.scatter_to_strided(logits, offsets, self.width).argmax(-1)
        return dspark_ops.accept_greedy(draft.tokens, target, lens, self._length)

    def _count(self, lens: Tensor, verified: int, rows: int, graph: bool) -> None:
        self.totals.steps += 1
        self.totals.rows_verified += verified
        self.totals.rows_padded += rows - verified
        self.totals.proposed += int((lens - 1).clamp(min=0).sum())
        self.totals.graph_steps += graph

    def _commit(self, accepted: dspark_ops.Accepted, lens: Tensor, outputs: list[list[int]]) -> None:
        assert accepted.new_seq_len is not None
        self.totals.accepted += int(accepted.correct_len.sum())
        self.totals.committed += int(accepted.commit_len.sum())
        self._length = accepted.new_seq_len
        self._root = torch.where(lens > 0, accepted.bonus, self._root)
        self._left = self._left - accepted.commit_len
        for slot, owner in enumerate(self._owner):
            if owner is None:
                continue
            outputs[owner] += accepted.out_tokens[slot, : int(accepted.commit_len[slot])].tolist()
            if self._left[slot] == 0:
                self._owner[slot] = None
                self.cache.release(slot)
