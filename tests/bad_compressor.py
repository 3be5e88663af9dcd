# ruff: noqa: E501 (a table: one line a row)
"""Bad input of the compressor's layout, state tables and safe lengths."""

from __future__ import annotations

from typing import Any

import torch
from bad_row import Row, i32, i64

import dspark_ops
from dspark_ops import CompressorTable

PAGES = CompressorTable(4, i32([[1]]), 8)


def layout(**kw: Any) -> object:
    good = {"cu_seqlens": i32([0, 2]), "seqused": i32([1]), "start_pos": i32([3]), "rows": 4, "tables": [PAGES]}
    return dspark_ops.compressor_layout(**{**good, **kw})


def workspace(rows: int, tables: list[CompressorTable]) -> dspark_ops.CompressorLayout:
    return dspark_ops.compressor_layout(i32([0, 1]), i32([1]), i32([0]), rows, tables)


def rows(**kw: Any) -> object:
    lengths = {"cu_seqlens": i32([0, 1]), "seqused": i32([1]), "start_pos": i32([0]), "request_slot": i32([0])}
    numbers = {"ratio": 4, "coff": 2, "ring": 16, "max_verify_len": 2, "dummy_row": -1}
    return dspark_ops.state_rows(**{**lengths, **numbers, **kw})


def blocks(**kw: Any) -> object:
    good = {"block_table": i32([[1]]), "seqused": i32([1]), "start_pos": i32([0])}
    return dspark_ops.state_blocks(**{**good, "ratio": 4, "coff": 2, "block_size": 8, **kw})


def safe(**kw: Any) -> object:
    return dspark_ops.max_safe_verify_len(**{"start_pos": i64([1]), "ratio": 4, "coff": 2, "max_verify_len": 8, **kw})


TABLE: list[Row] = [
    (layout, {"tables": []}, ValueError, "tables: expected one or two, got 0"),
    (layout, {"tables": [PAGES] * 3}, ValueError, "tables: expected one or two, got 3"),
    (layout, {"tables": [PAGES._replace(ratio=0)]}, ValueError, "tables[0].ratio: expected an int in"),
    (layout, {"tables": [PAGES, PAGES._replace(page_size=0)]}, ValueError, "tables[1].page_size: expected an int in"),
    (layout, {"tables": [PAGES._replace(page_table=i32([1]))]}, ValueError, "tables[0].page_table: expected shape"),
    (layout, {"tables": [PAGES._replace(slot_dtype=torch.int16)]}, TypeError, "tables[0].slot_dtype: expected torch.int32"),
    (layout, {"tables": [PAGES._replace(pad_slot=1 << 31)]}, ValueError, "pad_slot: expected an int in"),
    (layout, {"cu_seqlens": i32([0])}, ValueError, "cu_seqlens: expected shape [2], got [1]"),
    (layout, {"seqused": i64([1])}, TypeError, "seqused: expected dtype torch.int32"),
    (layout, {"start_pos": i32([1, 2])}, ValueError, "start_pos: expected shape [1]"),
    (layout, {"rows": -1}, ValueError, "rows: expected an int in"),
    (layout, {"out": workspace(4, [PAGES, PAGES])}, ValueError, "out.entries: expected one per table (1), got 2"),
    (layout, {"out": workspace(9, [PAGES])}, ValueError, "out.entries[0].rope_position: expected shape [2], got [3]"),
    (rows, {"ring": 0}, ValueError, "ring: expected an int in"),
    (rows, {"max_verify_len": 0}, ValueError, "max_verify_len: expected an int in"),
    (rows, {"dummy_row": 1 << 31}, ValueError, "dummy_row: expected an int in"),
    (rows, {"request_slot": i32([0, 1])}, ValueError, "request_slot: expected shape [1]"),
    (rows, {"swa_page": 4}, ValueError, "req_to_token, full_to_swa, swa_page: expected all of them or none"),
    (rows, {"swa_page": 0}, ValueError, "swa_page: expected an int in"),
    (rows, {"req_to_token": i32([[0]]), "swa_page": 1}, ValueError, "req_to_token, full_to_swa, swa_page: expected all"),
    (rows, {"out": torch.empty(1, 9, dtype=torch.int32)}, ValueError, "out: expected shape [1, 10], got [1, 9]"),
    (blocks, {"block_table": i32([1])}, ValueError, "block_table: expected shape [B, blocks]"),
    (blocks, {"block_table": torch.ones(1, 2)}, TypeError, "block_table: expected dtype torch.int32 or torch.int64"),
    (blocks, {"block_size": 0}, ValueError, "block_size: expected an int in"),
    (blocks, {"out": i64([[1]])}, TypeError, "out: expected dtype torch.int32, got torch.int64"),
    (safe, {"start_pos": torch.ones(1)}, TypeError, "start_pos: expected dtype torch.int32 or torch.int64"),
    (safe, {"ratio": 0}, ValueError, "ratio: expected an int in"),
    (safe, {"coff": 0}, ValueError, "coff: expected an int in"),
    (safe, {"max_verify_len": 0}, ValueError, "max_verify_len: expected an int in"),
]  # fmt: skip
