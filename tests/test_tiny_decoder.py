"""End to end: static, cap-accept and compact steps decode what plain decoding does (examples/tiny_decoder)."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import dspark_ops

sys.path.insert(0, str(Path(__file__).parent.parent))

from examples.tiny_decoder.__main__ import main, requests, staircase
from examples.tiny_decoder.cache import Cache
from examples.tiny_decoder.draft import MarkovDraft
from examples.tiny_decoder.engine import MODES, Engine, Options, Request, Totals
from examples.tiny_decoder.model import Config, Model, normalised, rope
from examples.tiny_decoder.step import make_step

CONFIG = Config()
MODEL = Model(CONFIG)
DRAFT = MarkovDraft(MODEL, sampled=False, scale=1.5, bias=-0.5)
STAIRCASE = staircase(CONFIG)
WORK = requests(CONFIG, 200, seed=3)
GRAPHS = {16: 12, 32: 14, 48: 16, 64: 13}  # rows of a captured graph, and its request slots


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def decode(
    mode: str = "compact", work: Sequence[Request] = WORK, step_ns: Tensor = STAIRCASE, **options: Any
) -> tuple[list[list[int]], Totals]:
    engine = Engine(MODEL, DRAFT, step_ns, Options(mode, **options))
    return engine.run(list(work)), engine.totals


@pytest.fixture(scope="module")
def plain() -> list[list[int]]:
    return decode("plain")[0]


def predictions(model: Model, sequences: Tensor) -> Tensor:
    """float64 logits [B, L, vocab] of whole sequences in one step: nothing comes from a cache."""
    model.config = replace(model.config, slots=len(sequences), padding_slots=0, max_len=sequences.shape[1])
    cache = Cache(model.config, "blocks")
    for slot in range(len(sequences)):
        cache.acquire(slot, sequences.shape[1])
    lens = torch.full((len(sequences),), sequences.shape[1], dtype=torch.int32)
    start = torch.zeros(len(sequences), dtype=torch.int64)
    step = make_step(cache, lens, lens, sequences.numel(), start, sequences[:, 0], sequences[:, 1:])
    return model(step, cache).view(*sequences.shape, -1)


def by_definition(model: Model, ids: Tensor) -> Tensor:
    """float64 logits [L, vocab] of a text, without a cache, a page or an operator of this package."""
    x, position = model.embedding[ids], torch.arange(len(ids))
    for layer in model.layers:
        h = normalised(x)
        key, value, query = rope(h @ layer.key, position), h @ layer.value, rope(h @ layer.query, position)
        content, score = (h @ layer.compress).view(len(ids), 2, layer.coff, -1).unbind(1)
        entry_key, entry_value = [key[:0]], [value[:0]]
        for start in range(0, len(ids) - layer.ratio + 1, layer.ratio):
            # The newest window with the last part of its features; with overlap, the one before with the first.
            parts = [(layer.coff - 1 - back, start - back * layer.ratio) for back in range(layer.coff)]
            spans = [(part, slice(at, at + layer.ratio)) for part, at in parts if at >= 0]
            weight = torch.cat([score[span, part] for part, span in spans]).softmax(0)
            pooled = (weight * torch.cat([content[span, part] for part, span in spans])).sum(0, keepdim=True)
            entry_key.append(rope(pooled @ layer.entry_key, position[start : start + 1]))
            entry_value.append(pooled @ layer.entry_value)
        rows = []
        for t in range(len(ids)):
            recent, complete = slice(max(0, t + 1 - model.config.window), t + 1), (t + 1) // layer.ratio
            keys, values = (
                torch.cat([token[recent], *entries[: 1 + complete]])
                for token, entries in ((key, entry_key), (value, entry_value))
            )
            rows.append((keys @ query[t] / math.sqrt(len(query[t]))).softmax(0) @ values)
        x = x + torch.stack(rows) @ layer.out
        x = x + torch.tanh(normalised(x) @ layer.up) @ layer.down
    deep = normalised(x) @ model.head * (model.config.deep / math.sqrt(model.config.width))
    return model.markov[ids] + deep


def test_plain_decoding_is_what_the_model_is_defined_to_say(plain: list[list[int]]) -> None:
    longest = sorted(zip(WORK, plain, strict=True), key=lambda pair: -len(pair[0].prompt) - len(pair[1]))
    for request, tokens in longest[:3] + longest[100:103] + longest[-5:]:
        predicted = by_definition(MODEL, torch.tensor(request.prompt + tokens)).argmax(-1)
        assert predicted[len(request.prompt) - 1 : -1].tolist() == tokens


@pytest.mark.parametrize("state", ["blocks", "rows"])
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("static", {}),
        ("cap_accept", {}),
        ("compact", {}),
        ("compact", {"search": "first_drop"}),
        ("compact", {"search": "global", "arrivals": 1}),
        ("compact", {"graphs": GRAPHS}),
        ("compact", {"graphs": GRAPHS, "fill_tier": True, "arrivals": 2}),
    ],
    ids=str,
)
def test_greedy_tokens_do_not_depend_on_the_mode(
    plain: list[list[int]], mode: str, options: dict[str, Any], state: str
) -> None:
    tokens, totals = decode(mode, state=state, **options)
    assert tokens == plain
    assert totals.committed == sum(request.max_new for request in WORK)
    if "arrivals" not in options:
        assert totals.steps < totals.committed // CONFIG.slots, "a step commits more than a token per request"
    if "graphs" in options:
        assert totals.graph_steps > totals.steps // 2
        assert totals.rows_padded > 0


def test_the_command_says_that_all_modes_agree(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(MODES)
    assert all(line.endswith("yes") for line in lines)


def test_filling_a_tier_turns_padding_into_drafts() -> None:
    linear = (30_000 + 400 * torch.arange(len(STAIRCASE))).int()  # knows nothing of the captured sizes
    _, bare = decode(work=WORK[:60], step_ns=linear, graphs=GRAPHS)
    _, filled = decode(work=WORK[:60], step_ns=linear, graphs=GRAPHS, fill_tier=True)
    assert filled.rows_padded / filled.steps < 0.5 * bare.rows_padded / bare.steps
    assert filled.accepted / filled.steps > bare.accepted / bare.steps


def test_fault_6_logits_are_not_mixed_across_requests(plain: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets of the lengths before trimming, instead of those that were run, give other tokens."""
    accept = dspark_ops.accept_greedy

    def stale_offsets(*args: Any, cu_seqlens: Tensor, **named: Any) -> dspark_ops.Accepted:
        before = torch.arange(len(cu_seqlens), dtype=torch.int32) * (CONFIG.gamma + 1)
        return accept(*args, cu_seqlens=before, **named)

    work = WORK[:40]
    assert decode(work=work)[0] == plain[:40]
    monkeypatch.setattr(dspark_ops, "accept_greedy", stale_offsets)
    assert decode(work=work)[0] != plain[:40]


def test_fault_8_capping_after_a_full_verify_saves_no_rows() -> None:
    """Cap-accept and compact commit the same tokens by the same plans; only compact verifies fewer rows."""
    static = decode("static", WORK[:60])[1]
    capped_tokens, capped = decode("cap_accept", WORK[:60])
    compact_tokens, compact = decode("compact", WORK[:60])
    assert capped_tokens == compact_tokens
    assert (capped.steps, capped.proposed, capped.accepted) == (compact.steps, compact.proposed, compact.accepted)
    assert capped.steps >= static.steps
    # Not equal: a request that ends earlier or later has its last, shorter steps elsewhere.
    assert capped.rows_verified / capped.steps == pytest.approx(static.rows_verified / static.steps, rel=0.05)
    assert compact.rows_verified == compact.proposed + compact.committed - compact.accepted, "a root each, and drafts"
    assert compact.rows_verified < 0.8 * capped.rows_verified


@pytest.mark.parametrize("mode", ["static", "compact"])
def test_fault_16_unbounded_lengths_lose_compressor_state(plain: list[list[int]], mode: str) -> None:
    """In the explicit-row form only; `max_safe_verify_len` prevents it (see the test of all modes)."""
    assert decode(mode, WORK[:60], state="rows", bound_lens=False)[0] != plain[:60]
    assert decode(mode, WORK[:60], state="blocks", bound_lens=False)[0] == plain[:60]


SAMPLED = Config(vocab=4, gamma=2, slots=1000, padding_slots=0, max_len=14, markov=1.5, deep=0.7)
PROMPT, LENGTH, COUNT = [1, 0], 5, 4000
# Step times by the requests that share a plan. One: two drafts are worth more than one, so that the fate of the first
# can hinge on how the second looks, which depends on the first one's token (appendix A of the paper). Four: requests
# compete for every row, by their current confidences.
STEP_NS = {
    1: torch.tensor([500, 1000, 1700, 2000], dtype=torch.int32),
    4: (400 + 150 * torch.arange(13)).int(),
}


@pytest.fixture(scope="module")
def expected() -> Tensor:
    """Counts of every pair of neighbouring tokens under plain sampling, exactly: [LENGTH - 1, vocab, vocab]."""
    vocab = SAMPLED.vocab
    texts = torch.cartesian_prod(*[torch.arange(vocab)] * LENGTH)
    whole = torch.cat([torch.tensor(PROMPT).expand(len(texts), -1), texts], 1)
    chance = predictions(Model(SAMPLED), whole)[:, len(PROMPT) - 1 : -1].softmax(-1)
    joint = chance.gather(2, texts[..., None])[..., 0].prod(1).view([vocab] * LENGTH)
    assert joint.sum() == pytest.approx(1)
    pairs = [joint.sum([k for k in range(LENGTH) if k not in (a, a + 1)]) for a in range(LENGTH - 1)]
    return COUNT * torch.stack(pairs)


def sample(mode: str, search: str, plan_group: int) -> tuple[Tensor, Totals]:
    """COUNT sampled continuations [COUNT, LENGTH] of the same prompt."""
    model = Model(SAMPLED)
    draft = MarkovDraft(model, sampled=True, scale=6, bias=-2.5)
    engine = Engine(model, draft, STEP_NS[plan_group], Options(mode, search=search, plan_group=plan_group, seed=7))
    return torch.tensor(engine.run([Request(PROMPT, LENGTH)] * COUNT)), engine.totals


def chi_square(tokens: Tensor, expected: Tensor) -> list[float]:
    """For each pair of neighbouring places: how far the counts of their tokens are from what is expected."""
    statistics = []
    for a in range(LENGTH - 1):
        counts = torch.bincount(tokens[:, a] * SAMPLED.vocab + tokens[:, a + 1], minlength=SAMPLED.vocab**2)
        want = expected[a].flatten()
        rare = want < 5  # pooled: the statistic is no chi-square with few expected
        counts, want = (torch.cat([t[~rare], t[rare].sum()[None]]) for t in (counts.double(), want))
        statistics.append(float(((counts - want).square() / want.clamp(min=1e-9)).sum()))
    return statistics


# 15 degrees of freedom: 44.3 is exceeded once in 10^4.
@pytest.mark.parametrize(
    ("mode", "search", "plan_group"),
    [
        ("plain", "history", 1),
        ("static", "history", 1),
        ("cap_accept", "history", 4),
        ("compact", "history", 1),
        ("compact", "history", 4),
        ("compact", "first_drop", 1),
        ("compact", "first_drop", 4),
    ],
)
def test_sampled_output_is_distributed_as_plain_sampling(
    mode: str, search: str, plan_group: int, expected: Tensor
) -> None:
    tokens, totals = sample(mode, search, plan_group)
    assert max(chi_square(tokens, expected)) < 44.3
    if mode not in ("plain", "static"):
        most = SAMPLED.gamma * (totals.committed - totals.accepted)  # with all drafts of every request in every step
        assert 0.1 * most < totals.proposed < 0.9 * most, "plans that cut, or there is nothing to see"


def test_a_global_budget_from_current_confidences_biases_samples(expected: Tensor) -> None:
    """What a plan must not do: the first draft's fate depends on its own token, by the confidence after it."""
    assert chi_square(sample("compact", "global", 1)[0], expected)[0] > 200
