"""All metadata of a padded compact verify step in two launches: `pad_to_bucket`, `ragged_layout`, `compressor_layout`.

Called one by one the three operators are three launches. Here the first launch pads the lengths while it lays the rows
out (the padding of a slot is a function of the total, so no program waits for another), and the second is
`compressor_layout` itself, which needs the padded cu_seqlens of all slots. One launch would have to make every program
of the compressor rebuild cu_seqlens and look it up by request, which a program cannot do without memory of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .. import _checks
from ..ops import pad_to_bucket as padding
from ..ops import ragged_layout as layouts
from ..ops.compressor_layout import CompressorLayout, CompressorTable, prepare
from ..ops.pad_to_bucket import PaddedLens
from ..ops.ragged_layout import RaggedLayout
from . import ragged_layout as kernel
from .pad_to_bucket import bound


class VerifyMetadata(NamedTuple):
    """Results of the three operators."""

    padded: PaddedLens
    layout: RaggedLayout
    compressor: CompressorLayout | None
    """None without tables."""


def verify_metadata(
    verify_lens: Tensor,
    rows: int,
    num_slots: int,
    *,
    cap: int | None = None,
    prefix: Tensor | None = None,
    root_tokens: Tensor | None = None,
    draft_tokens: Tensor | None = None,
    tables: Sequence[CompressorTable] = (),
    clamp_seqused_kv: bool = False,
    out: VerifyMetadata | None = None,
) -> VerifyMetadata:
    """The same bits as the three operators, on tensors that Triton serves.

    ``padded = pad_to_bucket(verify_lens, rows, num_slots, cap=cap)``, then ``ragged_layout(padded.padded, rows, ...)``,
    then ``compressor_layout(layout.cu_seqlens, padded.seqused, prefix, rows, tables, ...)``.

    Args:
        verify_lens: l, int32 [B].
        rows: R, the graph's rows.
        num_slots: the graph's requests, at least B.
        cap: most rows one slot may own, or None.
        prefix: s, int32 or int64 [num_slots]; needed with tables.
        root_tokens: int64 [num_slots], with draft_tokens.
        draft_tokens: int64 [num_slots, γ].
        tables: none, one or two `CompressorTable`, with a page table for each slot.
        clamp_seqused_kv: see `compressor_layout`.
        out: an earlier result to write into.

    Returns:
        `VerifyMetadata`.

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Capture: the ints and bools are fixed; every tensor may change on replay.
    """
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    _checks.integer("rows", rows, 0, (1 << 31) - 1)
    _checks.integer("num_slots", num_slots, 0, _checks.MAX_VERIFY_ROWS)
    if tables and prefix is None:
        raise ValueError("prefix: expected a tensor, since tables are given; got None")
    if out is None:
        padded = PaddedLens(*(verify_lens.new_empty(num_slots) for _ in range(2)))
        layout = layouts._allocate(padded.padded, rows, prefix is not None, root_tokens is not None)
    else:
        padded, layout = out.padded, out.layout
        _checks.output("out.padded", padded.padded, torch.int32, [num_slots], verify_lens.device)
        _checks.output("out.row_request", layout.row_request, torch.int32, [rows], verify_lens.device)
    padding._check(verify_lens, rows, -1 if cap is None else cap, *padded)
    layouts._check(padded.padded, prefix, root_tokens, draft_tokens, *layout)
    bucket = (*padded, rows, bound(-1 if cap is None else cap))
    with torch.cuda.device_of(verify_lens):  # as the dispatcher's kernels do
        kernel.launch(verify_lens, prefix, root_tokens, draft_tokens, layout, bucket)
    if not tables or prefix is None:
        return VerifyMetadata(padded, layout, None)
    compressor, arguments = prepare(
        layout.cu_seqlens, padded.seqused, prefix, rows, tables, clamp_seqused_kv, out and out.compressor
    )
    torch.ops.dspark_triton.compressor_layout(*arguments)
    return VerifyMetadata(padded, layout, compressor)
