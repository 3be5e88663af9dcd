"""`ascend_verify_metadata`: what a ragged TARGET_VERIFY step of DeepSeek-V4 needs on Ascend, from lengths and tables.

Today every request of such a step verifies N rows, so offsets are constants and the compressor's entries are found by
torch operators over [B, N]. With ragged lengths each field is a function of running sums over requests. The package has
an operator for each of them; this module calls them in order and names the results as the attention back end does, so
that uniform lengths give the tensors of today, eager and in a captured graph.

Launches: `ragged_layout` 1, the offsets without their leading 0 1 (the indexer wants a tensor of its own, not a view),
`compressor_layout` 1 for both ratios, 1 for each state table, and `pad_to_bucket` 1 where there are padding requests.
C4 and C128 with explicit state rows are so 5 launches eager and 6 for a graph.

A request with real rows owns no others. Attention's causal masks (modes 3 and 4, lower right) are aligned with the last
row a request owns, so a row of slack behind the real ones would move the mask of them all. Slack therefore goes to
padding requests only, N rows each at most; what is over is owned by nobody.

Source: the fixed-width metadata of SGLang 0.5.23's Ascend back end for DeepSeek-V4, which tests/test_ascend_parity.py
runs beside this; DESIGN 3.6 and 3.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from . import _checks
from .ops.compressor_layout import CompressorLayout, CompressorTable, compressor_layout
from .ops.pad_to_bucket import PaddedLens, pad_to_bucket
from .ops.ragged_layout import RaggedLayout, ragged_layout
from .ops.state_rows import state_blocks, state_rows
from .reference.pad_to_bucket import pad_to_bucket as pad_on_host


class StateRing(NamedTuple):
    """State by explicit rows (`cache_mode=2`), the arguments of `state_rows`."""

    request_slot: Tensor  # int32 or int64 [S]
    ring: int  # rows of a state ring
    dummy_row: int  # row of a column without state; no request owns it
    req_to_token: Tensor | None = None  # int32 [slots, max_context]; the last three for a ring per page (C4)
    full_to_swa: Tensor | None = None  # int32 or int64 [tokens]
    swa_page: int | None = None  # tokens per page of the sliding-window cache


class StateBlocks(NamedTuple):
    """State by blocks (`cache_mode=1`), the arguments of `state_blocks`."""

    block_table: Tensor  # int32 or int64 [S, blocks]; block 0 is reserved
    block_size: int  # positions per block


class AscendTable(NamedTuple):
    """One compression ratio: where its entries go, and its state in either form or both."""

    entries: CompressorTable
    coff: int  # windows one entry reads: 2 for C4, 1 for C128
    ring: StateRing | None = None
    blocks: StateBlocks | None = None


class HostLengths(NamedTuple):
    """On the CPU, the same values as the device's: for operators that plan on the host, and for the width of tables."""

    actual_seq_lengths_q_pa: Tensor  # int32[S + 1], with the leading 0
    actual_seq_lengths_kv: Tensor  # int32[S]

    def max_seqlen_kv(self) -> int:
        """Longest KV length, 0 without requests."""
        return int(self.actual_seq_lengths_kv.max()) if self.actual_seq_lengths_kv.numel() else 0


class AscendVerifyMetadata(NamedTuple):
    """The fields of a step with S requests, padding requests included, and R rows."""

    actual_seq_lengths_q: Tensor  # int32[S]: running sum of owned rows, without the leading 0
    layout: RaggedLayout  # rows; its cu_seqlens is the same sum with the leading 0
    compressor: CompressorLayout  # start_pos, seqused, seqused_kv, and per ratio positions and locations
    state_rows: tuple[Tensor | None, ...]  # int32[S, coff·r + N] per ratio, where a ring is given
    state_blocks: tuple[Tensor | None, ...]  # [S, blocks] per ratio, where blocks are given
    max_seqlen_q: int  # N, static
    host: HostLengths | None  # where host lengths are given
    scratch: PaddedLens | None  # of `pad_to_bucket`, where num_slots is given

    @property
    def actual_seq_lengths_q_pa(self) -> Tensor:
        """int32[S + 1]: running sum of owned rows, with the leading 0; `cu_seqlens` of the compressor and attention."""
        return self.layout.cu_seqlens

    @property
    def actual_seq_lengths_kv(self) -> Tensor:
        """int32[S]: s + u, at least 1 for a graph."""
        return self.compressor.seqused_kv

    @property
    def start_pos(self) -> Tensor:
        """int32[S]: s."""
        return self.compressor.start_pos

    @property
    def seqused(self) -> Tensor:
        """int32[S]: u, 0 for padding and idle requests."""
        return self.compressor.seqused


def _pad(
    verify_lens: Tensor | PaddedLens, rows: int, width: int, num_slots: int | None, scratch: PaddedLens | None
) -> tuple[PaddedLens, PaddedLens | None]:
    """Owned and real rows of every request, and the buffers for them."""
    if isinstance(verify_lens, PaddedLens):
        return verify_lens, None
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    if num_slots is None:
        return PaddedLens(verify_lens, verify_lens), None
    _checks.integer("num_slots", num_slots, verify_lens.shape[0], _checks.MAX_VERIFY_ROWS)
    if scratch is None:
        scratch = PaddedLens(*(verify_lens.new_empty(num_slots) for _ in range(2)))
    if num_slots == verify_lens.shape[0]:
        return PaddedLens(verify_lens, verify_lens), scratch
    return pad_to_bucket(verify_lens, rows, num_slots, cap=width, out=scratch), scratch


def _both(lens: Tensor | PaddedLens) -> PaddedLens:
    return lens if isinstance(lens, PaddedLens) else PaddedLens(lens, lens)


def _on_host(
    lens: Tensor | PaddedLens,
    start_pos: Tensor,
    like: Tensor | PaddedLens,
    rows: int,
    width: int,
    slots: int,
    graph: bool,
) -> HostLengths:
    """The device's values, saturated as there."""
    if isinstance(lens, PaddedLens) != isinstance(like, PaddedLens):
        want, have = type(like).__name__, type(lens).__name__
        raise TypeError(f"host_verify_lens: expected {want}, as verify_lens is, got {have}")
    cpu, given = torch.device("cpu"), _both(lens)
    for t, device in zip(given, _both(like), strict=True):
        _checks.tensor("host_verify_lens", t, _checks.INDEX_DTYPES, list(device.shape), cpu)
    _checks.tensor("host_start_pos", start_pos, _checks.INDEX_DTYPES, [slots], cpu)
    owned, used = given.padded.long(), given.seqused.long()
    if slots > owned.shape[0]:
        owned, used = (torch.empty(slots, dtype=torch.int64) for _ in range(2))
        pad_on_host(given.padded, rows, width, owned, used)
    most = (1 << 31) - 1
    offsets = torch.zeros(slots + 1, dtype=torch.int32)
    offsets[1:] = owned.clamp(min=0).cumsum(0).clamp(max=most)
    kv = start_pos.long().clamp(0, most) + used.clamp(min=0)
    return HostLengths(offsets, kv.clamp(1 if graph else 0, most).int())


def _layout(
    padded: PaddedLens,
    rows: int,
    start_pos: Tensor,
    tokens: tuple[Tensor | None, Tensor | None],
    out: RaggedLayout | None,
) -> RaggedLayout:
    """`ragged_layout` without its KV geometry, which counts owned rows and not real ones."""
    if out is None:
        owned = padded.padded

        def new(size: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(size, dtype=dtype, device=owned.device)

        offsets = new(owned.shape[0] + 1, torch.int32)
        out = RaggedLayout(offsets, new(rows, torch.int32), new(rows, torch.int32), new(rows, torch.int64))
        out = out._replace(verify_ids=None if tokens[0] is None else new(rows, torch.int64))
    root, drafts = tokens
    return ragged_layout(padded.padded, rows, prefix=start_pos, root_tokens=root, draft_tokens=drafts, out=out)


def _rows(
    table: AscendTable, ring: StateRing, layout: RaggedLayout, lens: CompressorLayout, width: int, out: Tensor | None
) -> Tensor:
    return state_rows(
        layout.cu_seqlens, lens.seqused, lens.start_pos, ring.request_slot, table.entries.ratio, table.coff, ring.ring,
        width, ring.dummy_row, req_to_token=ring.req_to_token, full_to_swa=ring.full_to_swa, swa_page=ring.swa_page,
        out=out,
    )  # fmt: skip


def _blocks(table: AscendTable, blocks: StateBlocks, lens: CompressorLayout, out: Tensor | None) -> Tensor:
    return state_blocks(
        blocks.block_table, lens.seqused, lens.start_pos, table.entries.ratio, table.coff, blocks.block_size, out=out
    )


def _state(
    tables: Sequence[AscendTable],
    layout: RaggedLayout,
    lens: CompressorLayout,
    width: int,
    out: AscendVerifyMetadata | None,
) -> tuple[tuple[Tensor | None, ...], tuple[Tensor | None, ...]]:
    """State tables in both forms; each None where it was not asked for."""
    by_row: list[Tensor | None] = []
    by_block: list[Tensor | None] = []
    for k, table in enumerate(tables):
        row, block = (out.state_rows[k], out.state_blocks[k]) if out is not None else (None, None)
        by_row.append(None if table.ring is None else _rows(table, table.ring, layout, lens, width, row))
        by_block.append(None if table.blocks is None else _blocks(table, table.blocks, lens, block))
    return tuple(by_row), tuple(by_block)


def _check(tables: Sequence[AscendTable], rows: int, width: int, out: AscendVerifyMetadata | None) -> None:
    _checks.integer("rows", rows, 0, (1 << 31) - 1)
    _checks.integer("width", width, 1, _checks.MAX_VERIFY_ROWS)
    for k, table in enumerate(tables):
        if not isinstance(table, AscendTable):
            raise TypeError(f"tables[{k}]: expected an AscendTable, got {type(table).__name__}")
    if out is None:
        return
    _checks.result("out", out, AscendVerifyMetadata)
    for name, have in (("state_rows", out.state_rows), ("state_blocks", out.state_blocks)):
        if len(have) != len(tables):
            raise ValueError(f"out.{name}: expected one per table ({len(tables)}), got {len(have)}")


def ascend_verify_metadata(
    verify_lens: Tensor | PaddedLens,
    start_pos: Tensor,
    rows: int,
    width: int,
    tables: Sequence[AscendTable],
    *,
    num_slots: int | None = None,
    graph: bool = False,
    root_tokens: Tensor | None = None,
    draft_tokens: Tensor | None = None,
    host_verify_lens: Tensor | PaddedLens | None = None,
    host_start_pos: Tensor | None = None,
    out: AscendVerifyMetadata | None = None,
) -> AscendVerifyMetadata:
    """Every field of a ragged TARGET_VERIFY step of DeepSeek-V4 on Ascend; S requests, R rows.

    Request i owns ``o_i`` rows, ``u_i`` of them real, behind ``s_i`` committed tokens. Then
    ``actual_seq_lengths_q`` = running sum of o, ``actual_seq_lengths_kv`` = s + u, and the rest is what
    `ragged_layout`, `compressor_layout`, `state_rows` and `state_blocks` say of (o, u, s). Without `num_slots`,
    o = u = l and S = B. With it, S = num_slots, and requests B .. S - 1 are padding: u = 0, and o from
    `pad_to_bucket` with cap N. A padding or idle request (u = 0) completes no entry, its state rows are all the dummy
    row and its state blocks all 0: nothing it computes is written. An idle rank calls with B = 0.

    Args:
        verify_lens: l, int32 [B], of the requests that are not padding; or `PaddedLens` of all S, whose requests with
            real rows must own no others (see above).
        start_pos: s, int32 or int64 [S]: committed tokens, the root excluded; 0 for padding requests, whose
            actual_seq_lengths_kv is s too.
        rows: R: rows of the input, or of the captured graph.
        width: N, static ``max_seqlen_q``: no request owns more rows.
        tables: one or two `AscendTable`, for C4 and C128; their tensors have a row for each of S.
        num_slots: requests of the captured graph.
        graph: buffers of a graph: locations int64 and actual_seq_lengths_kv at least 1. Else int32 and as it is.
            A table's ``slot_dtype`` goes before.
        root_tokens: int64 [S], with draft_tokens: also fills ``layout.verify_ids``.
        draft_tokens: int64 [S, γ].
        host_verify_lens: verify_lens again, in its form, on the CPU, with host_start_pos: also fills ``host``. Nothing
            else of the result is known on the host.
        host_start_pos: s again, [S] on the CPU.
        out: an earlier result; all its tensors keep their addresses. B may differ from call to call, S may not.

    Returns:
        `AscendVerifyMetadata`.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Capture: ints, bools and shapes are fixed; every device tensor may change on replay. Host forms are not replayed.
    """
    _check(tables, rows, width, out)
    if (host_verify_lens is None) != (host_start_pos is None):
        raise ValueError("host_verify_lens, host_start_pos: expected both or neither, got one")
    padded, scratch = _pad(verify_lens, rows, width, num_slots, out and out.scratch)
    slots = padded.padded.shape[0]
    _checks.tensor("start_pos", start_pos, _checks.INDEX_DTYPES, [slots], padded.padded.device)
    layout = _layout(padded, rows, start_pos, (root_tokens, draft_tokens), out and out.layout)
    ends = layout.cu_seqlens.new_empty(slots) if out is None else out.actual_seq_lengths_q
    _checks.output("out.actual_seq_lengths_q", ends, torch.int32, [slots], layout.cu_seqlens.device)
    ends.copy_(layout.cu_seqlens[1:])
    dtype = torch.int64 if graph else torch.int32
    entries = [t.entries._replace(slot_dtype=t.entries.slot_dtype or dtype) for t in tables]
    lens = compressor_layout(
        layout.cu_seqlens, padded.seqused, start_pos, rows, entries, clamp_seqused_kv=graph, out=out and out.compressor
    )
    state = _state(tables, layout, lens, width, out)
    host = None
    if host_verify_lens is not None and host_start_pos is not None:
        host = _on_host(host_verify_lens, host_start_pos, verify_lens, rows, width, slots, graph)
    return AscendVerifyMetadata(ends, layout, lens, *state, width, host, scratch)
