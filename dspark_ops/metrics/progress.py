"""Progress and acceptance, each under its own name and over its own denominator (DESIGN 3.9).

Three figures are easily confused. *Acceptance rate*: accepted over proposed drafts, where a draft is proposed when the
target verified it. *Drafted*: what the draft model produced, trimmed or not. *Accept length*: committed tokens per
request-step, the bonus included; (AL - 1) / γ is none of these once lengths differ, and is not offered here.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class AcceptanceCounts:
    """Counts that add up over steps and ranks with `+`.

    `proposed` is None where a source did not count it; a rate over it is then None as well, never a stand-in.
    """

    request_steps: int = 0  # active requests, summed over steps
    drafted: int = 0
    proposed: int | None = 0
    accepted: int = 0
    committed: int = 0  # accepted drafts and bonus tokens, as the engine commits them
    visible: int | None = None  # of these, what the user is shown

    def __add__(self, other: AcceptanceCounts) -> AcceptanceCounts:
        def both(a: int | None, b: int | None) -> int | None:
            return None if a is None or b is None else a + b

        empty = AcceptanceCounts()
        if empty in (self, other):
            return other if self == empty else self
        return AcceptanceCounts(
            self.request_steps + other.request_steps,
            self.drafted + other.drafted,
            both(self.proposed, other.proposed),
            self.accepted + other.accepted,
            self.committed + other.committed,
            both(self.visible, other.visible),
        )

    @property
    def acceptance_rate(self) -> float | None:
        """accepted / proposed; None if proposed is unknown or 0."""
        return self.accepted / self.proposed if self.proposed else None

    @property
    def accepted_of_drafted(self) -> float | None:
        """accepted / drafted: trimming lowers it without any draft getting worse."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def accept_length(self) -> float | None:
        """committed / request_steps, the bonus included."""
        return self.committed / self.request_steps if self.request_steps else None


def count_acceptance(
    correct_len: Tensor, verify_lens: Tensor, gamma: int, visible: Tensor | None = None
) -> AcceptanceCounts:
    """Counts of one step, on the host.

    Args:
        correct_len: accepted drafts, integer [B], at most verify_len - 1.
        verify_lens: rows verified, root included, integer [B]; 0 for an inactive request.
        gamma: drafts that the draft model made per active request.
        visible: integer [B], what `visible_len` gave.

    Raises ValueError if a request accepted more than it verified.
    """
    lens, correct = verify_lens.detach().cpu().long(), correct_len.detach().cpu().long()
    if correct.shape != lens.shape:
        raise ValueError(f"correct_len: expected shape {list(lens.shape)}, got {list(correct.shape)}")
    proposed = (lens - 1).clamp(min=0)
    wrong = (correct < 0) | (correct > proposed)
    if wrong.any():
        r = int(wrong.nonzero()[0])
        raise ValueError(
            f"correct_len[{r}]: expected at most verify_len - 1 = {int(proposed[r])} and at least 0, "
            f"got {int(correct[r])}"
        )
    active = int((lens > 0).sum())
    accepted = int(correct.sum())
    shown = None if visible is None else int(visible.sum())
    return AcceptanceCounts(active, active * gamma, int(proposed.sum()), accepted, accepted + active, shown)


def visible_len(
    out_tokens: Tensor,
    commit_len: Tensor,
    stop_tokens: Tensor | None = None,
    remaining: Tensor | None = None,
    include_stop: bool = False,
) -> Tensor:
    """Committed tokens that the user is shown, int64 [B]: up to a stop token and to the length limit.

    ``min(commit_len, remaining, first stop token's index + include_stop)``. The engine commits, and tau counts, also
    what lies after them: the difference is work that no user sees.

    Args:
        out_tokens: int64 [B, N], as `accept_greedy` returns it.
        commit_len: integer [B].
        stop_tokens: int64 [any], EOS and other stop ids. Default none.
        remaining: integer [B], tokens the request may still emit (>= 0). Default no limit.
        include_stop: whether the stop token itself is shown.
    """
    width = out_tokens.shape[1]
    shown = commit_len.long()
    if remaining is not None:
        shown = torch.minimum(shown, remaining.long())
    if stop_tokens is not None:
        place = torch.arange(width, device=out_tokens.device)
        stops = torch.isin(out_tokens, stop_tokens) & (place < commit_len[:, None])
        first = torch.where(stops, place, width).amin(1)
        shown = torch.minimum(shown, torch.where(first < width, first + int(include_stop), shown))
    return shown
