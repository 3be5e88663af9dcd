"""Decode the same requests in every mode: `python -m examples.tiny_decoder`."""

from __future__ import annotations

import random
import time

import torch

from .draft import MarkovDraft
from .engine import MODES, Engine, Options, Request
from .model import Config, Model


def requests(config: Config, count: int, seed: int) -> list[Request]:
    """Prompts that start in the middle of a window of either compressor, or just before its end."""
    rng = random.Random(seed)

    def prompt() -> list[int]:
        return [rng.randrange(config.vocab) for _ in range(rng.choice((1, 2, 7, 30, 100, 121, 126, 128, 140)))]

    return [Request(prompt(), rng.randint(1, 40)) for _ in range(count)]


def staircase(config: Config) -> torch.Tensor:
    """A made-up step time in ns that rises every 16 rows, as graphs captured at these sizes would."""
    rows = torch.arange(config.slots * (config.gamma + 1) + 1)
    return (30_000 + 4_000 * ((rows + 15) // 16)).int()


def main() -> None:
    torch.set_num_threads(1)
    config = Config()
    model = Model(config)
    draft = MarkovDraft(model, sampled=False, scale=1.5, bias=-0.5)
    work = requests(config, count=60, seed=1)
    print("mode        steps  rows verified  accepted / proposed  seconds  the same tokens as plain")
    plain: list[list[int]] = []
    for mode in MODES:
        start = time.perf_counter()
        engine = Engine(model, draft, staircase(config), Options(mode))
        tokens = engine.run(work)
        seconds, totals = time.perf_counter() - start, engine.totals
        plain = plain or tokens
        share = f"{totals.accepted} / {totals.proposed}"
        same = "yes" if tokens == plain else "NO"
        print(f"{mode:<10}{totals.steps:>7}{totals.rows_verified:>15}{share:>21}{seconds:>9.2f}  {same}")


if __name__ == "__main__":
    main()
