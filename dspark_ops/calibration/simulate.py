"""Replays recorded steps under a calibration: the tokens per second that its plans would have given.

Step resampling, as in `dspark_ops.replay`: each request takes its recorded steps in order whatever a plan commits, a
request that ends hands its slot to the next, and the run stops when a slot finds none. Every calibration therefore sees
the same steps. The plans come from the operators, offsets included; they observe only the drafts that they verified.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..metrics import AcceptanceCounts, Bucket, TauBias, count_acceptance
from ..ops.allocate_verify_lens import allocate_verify_lens
from .samples import SAMPLED, Samples
from .tables import Calibration

SEARCHES = ("history", "first_drop", "global")
_Q43 = 2.0**43


@dataclass(frozen=True)
class Schedule:
    """Which sample each slot takes at each step; `first` marks a request's first step, as all of step 0 are.

    Both [steps, B].
    """

    rows: Tensor
    first: Tensor


@dataclass
class Run:
    """Sums over one replay."""

    tokens: int = 0
    seconds: float = 0.0
    rows: int = 0
    counts: AcceptanceCounts = field(default_factory=AcceptanceCounts)
    tau: TauBias = field(default_factory=TauBias)

    @property
    def tokens_per_second(self) -> float:
        """Committed tokens per simulated second."""
        return self.tokens / self.seconds


def check_search(search: str, acceptance: str) -> None:
    """Raise ValueError unless the search is one that keeps the output's distribution under this acceptance."""
    if search not in SEARCHES:
        raise ValueError(f"search: expected one of {', '.join(SEARCHES)}, got {search!r}")
    if search == "global" and acceptance == SAMPLED:
        raise ValueError("search: expected history or first_drop with sampled acceptance, got 'global'")


def schedule(samples: Samples, batch: int, seed: int = 0) -> Schedule:
    """B slots over the requests in a random order (`seed`); ValueError with fewer than B requests."""
    requests = samples.requests()
    if not 1 <= batch <= len(requests):
        raise ValueError(f"batch: expected a number in [1, {len(requests)}], the requests of the samples, got {batch}")
    order = torch.randperm(len(requests), generator=torch.Generator().manual_seed(seed)).tolist()
    waiting = iter([requests[i].tolist() for i in order])
    slots = [next(waiting) for _ in range(batch)]
    place = [0] * batch
    rows, first = [], []
    while True:
        rows.append([steps[i] for steps, i in zip(slots, place, strict=True)])
        first.append([i == 0 for i in place])
        for b in range(batch):
            place[b] += 1
            if place[b] == len(slots[b]):
                following = next(waiting, None)
                if following is None:
                    return Schedule(torch.tensor(rows), torch.tensor(first))
                slots[b], place[b] = following, 0


def simulate(
    samples: Samples,
    steps: Schedule,
    step_ns: Tensor,
    calibration: Calibration,
    search: str = "history",
    tiers: Tensor | None = None,
) -> Run:
    """Plan and accept every step of the schedule.

    Args:
        samples: what the schedule points into.
        step_ns: ns of a step by its rows, int32 [> B·N].
        calibration: must serve the samples' γ and acceptance.
        search: "history" (the budget from the slot's previous step), "first_drop" or "global" on current confidences;
            the last is refused for sampled acceptance, where it is not lossless.
        tiers: captured sizes, int32, ascending, that the bias of tau is filed under; nothing is filled. Default: none.
    """
    check_search(search, samples.acceptance)
    calibration.check_serves(samples.gamma, samples.acceptance)
    operands, rule, run = calibration.operands(), calibration.offset_rule, Run()
    batch, lagged = steps.rows.shape[1], search == "history"
    offset = torch.zeros(batch)
    correct_len = samples.correct_len.int()
    before = steps.rows.roll(1, 0)  # of the first step the last, which is not fresh there
    for rows, first, previous in zip(steps.rows, steps.first, before, strict=True):
        offset.masked_fill_(first, 0.0)
        plan = allocate_verify_lens(
            step_ns=step_ns,
            logits=samples.logits[rows],
            offset=offset,
            **operands,
            # What a slot had before a first step is another request's: it is not fresh, so its values do not matter.
            history=samples.logits[previous] if lagged else None,
            fresh=~first if lagged else None,
            search=None if lagged else search,
            tiers=tiers,
        )
        lens = plan.verify_lens
        correct = torch.minimum(correct_len[rows], lens - 1)
        if rule is not None and plan.confidence is not None:
            rule.update(offset, plan.confidence, correct, lens)
        verified, tokens = int(plan.stats[1]), int(correct.sum()) + batch
        bucket = Bucket(batch, int(lagged), samples.acceptance, int(plan.stats[2]))
        _count(run, verified, tokens, step_ns)
        run.counts += count_acceptance(correct, lens, samples.gamma)
        run.tau.add(bucket, int(plan.stats[3]) / _Q43, tokens)
    return run


def simulate_oracle(samples: Samples, steps: Schedule, step_ns: Tensor) -> Run:
    """The same with confidences that know the outcome: what no head can beat."""
    known, run = samples.outcome.float(), Run()
    for rows in steps.rows:
        plan = allocate_verify_lens(known[rows], step_ns, search="global")
        accepted = torch.minimum(samples.correct_len[rows], plan.verify_lens.long() - 1)
        _count(run, int(plan.stats[1]), int(accepted.sum()) + len(rows), step_ns)
    return run


def best_fixed(samples: Samples, steps: Schedule, step_ns: Tensor) -> tuple[int, Run]:
    """The best common verify length in hindsight, and its run: what a plan has to beat."""
    correct = samples.correct_len[steps.rows]
    count, batch = steps.rows.shape
    best: tuple[int, Run] | None = None
    for length in range(1, samples.gamma + 2):
        tokens = int(correct.clamp(max=length - 1).sum()) + count * batch
        run = Run(tokens, count * int(step_ns[batch * length]) * 1e-9, count * batch * length)
        if best is None or run.tokens_per_second > best[1].tokens_per_second:
            best = length, run
    assert best is not None
    return best


def _count(run: Run, rows: int, tokens: int, step_ns: Tensor) -> None:
    run.rows += rows
    run.tokens += tokens
    run.seconds += int(step_ns[rows]) * 1e-9
