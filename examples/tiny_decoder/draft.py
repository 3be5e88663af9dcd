"""A draft model: a Markov chain that knows a part of the target, and a confidence head on it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .model import Model


class Draft(NamedTuple):
    tokens: Tensor  # int64 [B, γ]
    logits: Tensor  # float32 [B, γ]: confidence; position k looks at the tokens before k only
    chances: Tensor  # float64 [B, γ, vocab]: what the tokens were drawn from


class MarkovDraft:
    """Proposes γ tokens one after another. The confidence of a token depends on the one before it, never on itself."""

    def __init__(self, model: Model, sampled: bool, scale: float = 1.0, bias: float = 0.0) -> None:
        self.gamma, self.sampled = model.config.gamma, sampled
        self._chances = model.markov.softmax(-1)
        best = self._chances.topk(2, -1).values
        # Greedy: a clear favourite is likely to stay one. Sampled: the more peaked, the larger the overlap.
        surety = self._chances.square().sum(-1) if sampled else (best[:, 0] / best[:, 1]).log()
        self._confidence = (scale * surety + bias).float()

    def __call__(self, root: Tensor, random: torch.Generator) -> Draft:
        tokens, logits, chances = [], [], []
        token = root
        for _ in range(self.gamma):
            row = self._chances[token]
            logits.append(self._confidence[token])
            token = torch.multinomial(row, 1, generator=random)[:, 0] if self.sampled else row.argmax(-1)
            tokens.append(token)
            chances.append(row)
        return Draft(torch.stack(tokens, 1), torch.stack(logits, 1), torch.stack(chances, 1))
