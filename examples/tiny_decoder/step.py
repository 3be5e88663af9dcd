"""The metadata of one forward pass over ragged rows, made by the operators of dspark_ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import dspark_ops

from .cache import Cache, LayerCache


@dataclass(frozen=True)
class LayerStep:
    """Where a layer's compressor finds its state and puts its entries in this step."""

    entries: dspark_ops.CompressorEntries
    table: Tensor  # state rows [requests, coff·ratio + width], or the block table [requests, blocks]


@dataclass(frozen=True)
class Step:
    """R rows of the requests of a step: padding requests and rows included."""

    layout: dspark_ops.RaggedLayout
    position: Tensor  # int64 [R]
    start: Tensor  # int64 [requests]: tokens before this step
    seqused: Tensor  # int32 [requests]: rows that hold real tokens
    request: Tensor  # int64 [R]: request of the row, 0 on padding
    real: Tensor  # bool [R]
    layers: list[LayerStep]


def make_step(
    cache: Cache, owned: Tensor, seqused: Tensor, rows: int, start: Tensor, root: Tensor, drafts: Tensor
) -> Step:
    """Rows and compressor metadata for requests that own `owned` rows each, `seqused` of them real."""
    layout = dspark_ops.ragged_layout(owned, rows, prefix=start, root_tokens=root, draft_tokens=drafts)
    tables = [
        dspark_ops.CompressorTable(
            layer.ratio, layer.entries.table[: len(owned)], layer.entries.page, pad_slot=0, slot_dtype=torch.int64
        )
        for layer in cache.layers
    ]
    compressor = dspark_ops.compressor_layout(layout.cu_seqlens, seqused, start, rows, tables)
    width = drafts.shape[1] + 1
    layers = [
        LayerStep(entries, _state_table(cache, layer, layout.cu_seqlens, seqused, start, width))
        for layer, entries in zip(cache.layers, compressor.entries, strict=True)
    ]
    request = layout.row_request.clamp(min=0).long()
    real = (layout.row_request >= 0) & (layout.row_offset < seqused[request])
    assert layout.position is not None
    return Step(layout, layout.position, start, seqused, request, real, layers)


def _state_table(
    cache: Cache, layer: LayerCache, cu_seqlens: Tensor, seqused: Tensor, start: Tensor, width: int
) -> Tensor:
    ratio, coff, requests = layer.ratio, layer.coff, len(seqused)
    if layer.blocks is not None:
        table = layer.blocks.table[:requests]
        return dspark_ops.state_blocks(table, seqused, start, ratio, coff, layer.blocks.page)
    slots = torch.arange(requests)
    paged: dict[str, Any] = {}
    if coff == 2:  # a ring per page of the window, instead of one per request
        window, length = cache.window, cache.window.table.shape[1] * cache.window.page
        tokens = window.rows(slots[:, None], torch.arange(length)).int()
        paged = {"req_to_token": tokens, "full_to_swa": cache.full_to_swa, "swa_page": window.page}
    # A padding request has no ring: its slot is none.
    slots = torch.where(slots < cache.config.slots, slots, -1)
    sizes = (ratio, coff, layer.ring_rows, width, layer.dummy_row)
    return dspark_ops.state_rows(cu_seqlens, seqused, start, slots, *sizes, **paged)
