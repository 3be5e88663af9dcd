"""The training side: the soft label 1 - TV(q, p), its loss, and the head that learns it.

Standard rejection sampling keeps a draft token from q with probability ``sum_x min(q(x), p(x)) = 1 - TV(q, p)``, so
that is what a confidence logit is trained to, as a soft target of binary cross entropy. It is not the event by which a
greedy server accepts; a calibration fitted to recorded outcomes bridges the two.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def soft_accept(draft: Tensor, target: Tensor) -> Tensor:
    """The label 1 - TV(q, p) = 1 - ½ · sum |q - p|, float32 without the last dimension; no gradient flows through it.

    Args:
        draft, target: logits of q and p over the same vocabulary, float [..., V]. Scale them by the serving
            temperature first, if it is not 1.
    """
    if draft.shape != target.shape:
        raise ValueError(f"target: expected shape {list(draft.shape)}, got {list(target.shape)}")
    with torch.no_grad():
        q, p = draft.float().softmax(-1), target.float().softmax(-1)
        return (1 - 0.5 * (q - p).abs().sum(-1)).clamp(0, 1)


def confidence_loss(logits: Tensor, label: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean binary cross entropy between sigmoid(logits) and a soft label, in float32.

    ``sum w · (softplus(z) - a·z) / sum w``; its minimum is at sigmoid(z) = a. A batch without weight gives 0.

    Args:
        logits: z, float [...].
        label: a in [0, 1], the same shape; `soft_accept` makes it.
        weight: float or bool, the same shape: which positions count. Default all.
    """
    for name, t in (("label", label), ("weight", weight)):
        if t is not None and t.shape != logits.shape:
            raise ValueError(f"{name}: expected shape {list(logits.shape)}, got {list(t.shape)}")
    z, a = logits.float(), label.float()
    if weight is None:
        return nn.functional.binary_cross_entropy_with_logits(z, a)
    w = weight.float()
    # A masked position may hold anything, NaN included: it must not reach the gradient either.
    z, a = (torch.where(w > 0, x, 0.0) for x in (z, a))
    total = nn.functional.binary_cross_entropy_with_logits(z, a, w, reduction="sum")
    return total / w.sum().clamp_min(torch.finfo(torch.float32).tiny)


class ConfidenceHead(nn.Module):
    """One confidence logit per position: linear on [draft hidden ; embedding of the token before it].

    State-dict compatible with DeepSpec's `AcceptRatePredictor` and SGLang's confidence head: `proj.weight` [1, H + E]
    and `proj.bias` [1].

    Args:
        hidden_size: H of the draft's hidden states.
        embedding_size: E, rank of the Markov head's token embedding; 0 leaves it out.
    """

    def __init__(self, hidden_size: int, embedding_size: int = 0) -> None:
        super().__init__()
        if hidden_size < 1 or embedding_size < 0:
            raise ValueError(
                f"hidden_size, embedding_size: expected at least 1 and 0, got {hidden_size} and {embedding_size}"
            )
        self.embedding_size = embedding_size
        self.proj = nn.Linear(hidden_size + embedding_size, 1)

    def forward(self, hidden: Tensor, embedding: Tensor | None = None) -> Tensor:
        """Logits [..., γ].

        Args:
            hidden: [..., γ, H].
            embedding: [..., γ, E], of the tokens of `previous_tokens`; needed iff E > 0.
        """
        if (embedding is None) != (self.embedding_size == 0):
            expected = f"one of size {self.embedding_size}" if self.embedding_size else "none"
            raise ValueError(f"embedding: expected {expected}, got {'none' if embedding is None else 'one'}")
        features = hidden if embedding is None else torch.cat([hidden, embedding.to(hidden.dtype)], -1)
        return self.proj(features.to(self.proj.weight.dtype)).squeeze(-1)

    def loss(self, hidden: Tensor, embedding: Tensor | None, label: Tensor, weight: Tensor | None = None) -> Tensor:
        """`confidence_loss` of this head's logits."""
        return confidence_loss(self(hidden, embedding), label, weight)


def previous_tokens(anchor: Tensor, draft_tokens: Tensor) -> Tensor:
    """The token before each draft, [B, γ]: the anchor, then the drafts but the last.

    Args:
        anchor: [B], last committed token.
        draft_tokens: [B, γ].
    """
    return torch.cat([anchor[:, None], draft_tokens[:, :-1]], 1)
