"""A compressor in numpy, by what is published of DeepSeek-V4's, that keeps its state where the metadata says.

A token gives a value and a score of coff·D channels. Entry e is the softmax-weighted sum of the values of window e, one
weight per position and channel, plus a learned score per place in the window (`ape`). With overlap (C4, coff = 2) the
window before takes part too: it gives its first D channels, the window itself its last D.

What a step needs of earlier tokens lies in the state: value and score of a position. The block form (`cache_mode=1`)
keeps every row of a step, the explicit form (`cache_mode=2`) only positions from (floor((s + u) / r) - (coff - 1))·r
on. Rows are saved before any is read: the operator promises no order, so neither may a test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import torch

from dspark_ops import (
    AscendTable,
    AscendVerifyMetadata,
    CompressorTable,
    StateBlocks,
    StateRing,
    ascend_verify_metadata,
)

D, BLOCK, ENTRY_PAGE, LONGEST = 2, 8, 4, 700
WRONG = 1 << 20  # tokens from here on were never committed


@dataclass
class Compressor:
    """The function: no state."""

    ratio: int
    coff: int
    ape: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.ape = np.random.default_rng(self.ratio).normal(size=(self.ratio, self.coff * D))

    def project(self, tokens: Any) -> Any:
        """[n, 2·coff·D]: values, then scores."""
        phase = np.arange(1, 2 * self.coff * D + 1) * 0.7391
        return np.sin(np.asarray(tokens)[:, None] * phase + phase**2)

    def entry(self, number: int, projected: Any) -> Any:
        """Entry `number`, from projected rows of its coff windows in order of position; entry 0 has none before it."""
        first = self.coff - 1 if number else 0
        rows = projected[-(first + 1) * self.ratio :].reshape(first + 1, self.ratio, 2, self.coff, D)
        parts = range(self.coff - 1 - first, self.coff)  # window w gives its channels of group w
        ape = self.ape.reshape(self.ratio, self.coff, D)
        values = np.concatenate([rows[w, :, 0, p] for w, p in enumerate(parts)])
        scores = np.concatenate([rows[w, :, 1, p] + ape[:, p] for w, p in enumerate(parts)])
        weights = np.exp(scores)
        return (weights * values).sum(0) / weights.sum(0)

    def first_read(self, number: int) -> int:
        """First position that entry `number` reads."""
        return max(0, number - (self.coff - 1)) * self.ratio

    def decode(self, tokens: list[int]) -> Any:
        """All entries of a sequence, by definition."""
        rows = self.project(tokens)
        count = len(tokens) // self.ratio
        return [self.entry(e, rows[self.first_read(e) : (e + 1) * self.ratio]) for e in range(count)]


class Serving:
    """B requests and one padding request whose tables point at request 0's: steps of any lengths and acceptances."""

    def __init__(self, model: Compressor, form: str, prompts: list[list[int]], width: int, ring: int) -> None:
        self.model, self.form, self.width, self.ring = model, form, width, ring
        self.tokens = [list(p) for p in prompts]
        batch = len(prompts)
        owner = torch.tensor([*range(batch), 0])  # the padding request aliases request 0
        pages = LONGEST // model.ratio // ENTRY_PAGE + 1
        self.entry_table = (torch.arange(1, batch * pages + 1).reshape(batch, pages))[owner]
        blocks = LONGEST // BLOCK + 1
        block_table = (torch.arange(1, batch * blocks + 1).reshape(batch, blocks))[owner]
        dummy = batch * ring
        self.table = AscendTable(
            CompressorTable(model.ratio, self.entry_table, ENTRY_PAGE),
            model.coff,
            StateRing(owner, ring, dummy) if form == "explicit" else None,
            StateBlocks(block_table, BLOCK) if form == "block" else None,
        )
        rows = dummy + 1 if form == "explicit" else (batch * blocks + 1) * BLOCK
        self.state = np.full((rows, 2 * model.coff * D), np.nan)
        self.entries = np.full(((batch * pages + 1) * ENTRY_PAGE, D), np.nan)
        for i, prompt in enumerate(prompts):
            self._prefill(i, prompt, block_table)

    def _prefill(self, i: int, prompt: list[int], block_table: torch.Tensor) -> None:
        projected = self.model.project(prompt)
        for p in range(max(0, len(prompt) - self.model.coff * self.model.ratio), len(prompt)):
            row = i * self.ring + p % self.ring
            self.state[row if self.form == "explicit" else block_table[i, p // BLOCK] * BLOCK + p % BLOCK] = projected[
                p
            ]
        for e, value in enumerate(self.model.decode(prompt)):
            self.entries[int(self.entry_table[i, e // ENTRY_PAGE]) * ENTRY_PAGE + e % ENTRY_PAGE] = value

    def step(self, lens: list[int], future: list[list[int]], accepted: list[int]) -> AscendVerifyMetadata:
        """Verify lens[i] rows of request i, of which the first accepted[i] hold its next tokens; then commit these."""
        start = [len(t) for t in self.tokens]
        rows = sum(lens) + 3  # three rows are the padding request's
        meta = ascend_verify_metadata(
            torch.tensor(lens, dtype=torch.int32), torch.tensor([*start, 5]), rows, self.width, [self.table],
            num_slots=len(lens) + 1, graph=True,
        )  # fmt: skip
        x = WRONG + np.arange(rows)
        for i, at in enumerate(meta.actual_seq_lengths_q_pa.tolist()[:-2]):
            x[at : at + accepted[i]] = future[i][: accepted[i]]
        self._compress(meta, self.model.project(x))
        for i, n in enumerate(accepted):
            self.tokens[i] += future[i][:n]
        return meta

    def _rows(self, meta: AscendVerifyMetadata, i: int, positions: Any) -> Any:
        """State row of each position; -1 where nothing is written."""
        start = int(meta.start_pos[i])
        if self.form == "explicit":
            row = meta.state_rows[0][i].numpy()[self.model.coff * self.model.ratio + positions - start]  # type: ignore[index]
            return np.where(row == self.table.ring.dummy_row, -1, row)  # type: ignore[union-attr]
        block = meta.state_blocks[0][i].numpy()[positions // BLOCK]  # type: ignore[index]
        return np.where(block == 0, -1, block * BLOCK + positions % BLOCK)

    def _compress(self, meta: AscendVerifyMetadata, projected: Any) -> None:
        model, found = self.model, meta.compressor.entries[0]
        row, place = meta.actual_seq_lengths_q_pa.tolist(), found.offsets.tolist()
        for i, (start, used) in enumerate(zip(meta.start_pos.tolist(), meta.seqused.tolist(), strict=True)):
            fresh = projected[row[i] : row[i] + used]
            kept = np.arange(start, start + used)
            if self.form == "explicit":
                kept = kept[kept >= ((start + used) // model.ratio - (model.coff - 1)) * model.ratio]
            where = self._rows(meta, i, kept)
            self.state[where[where >= 0]] = fresh[kept - start][where >= 0]
            for at in range(place[i], place[i + 1]):
                number = int(found.rope_position[at]) // model.ratio
                first, end = model.first_read(number), int(found.query_row[at]) - row[i] + 1
                past = self.state[self._rows(meta, i, np.arange(first, start))]
                now = fresh[max(0, first - start) : end]
                self.entries[int(found.slot[at])] = model.entry(number, np.concatenate([past, now]))

    def wrong(self) -> list[bool]:
        """Per request, whether a committed entry is not what decoding token by token gives."""
        result = []
        for i, tokens in enumerate(self.tokens):
            e = np.arange(len(tokens) // self.model.ratio)
            got = self.entries[self.entry_table[i].numpy()[e // ENTRY_PAGE] * ENTRY_PAGE + e % ENTRY_PAGE]
            want = self.model.decode(tokens)
            result.append(not np.array_equal(got, np.array(want).reshape(got.shape)))
        return result


def sequence(rng: Random, length: int) -> list[int]:
    return [rng.randrange(1 << 16) for _ in range(length)]
