# ruff: noqa: E501 (a table: one line a row)
"""Bad input of the acceptance functions and of the offset that learns from them."""

from __future__ import annotations

from typing import Any

import torch
from bad_row import Row, i32, i64

import dspark_ops

DRAFTS, TARGET, ONE, RAW = i64([[0] * 3] * 2), i64([[0] * 4] * 2), i32([1, 1]), i32([0, 0])
ACCEPTED = dspark_ops.finalize_accept(RAW, DRAFTS, ONE, bonus=i64([0, 0]))


def finalize(**kw: Any) -> object:
    good = {"raw_correct_len": RAW, "draft_tokens": DRAFTS, "verify_lens": ONE, "bonus": i64([0, 0])}
    return dspark_ops.finalize_accept(**{**good, **kw})


def greedy(**kw: Any) -> object:
    return dspark_ops.accept_greedy(**{"draft_tokens": DRAFTS, "target_tokens": TARGET, "verify_lens": ONE, **kw})


def learn(**kw: Any) -> object:
    good = {"offset": torch.zeros(3), "confidence": torch.zeros(3, 2)}
    return dspark_ops.update_offset(**{**good, "correct_len": i32([0] * 3), "verify_lens": i32([1] * 3), **kw})


TABLE: list[Row] = [
    (finalize, {"raw_correct_len": i64([0, 0])}, TypeError, "raw_correct_len: expected dtype torch.int32"),
    (finalize, {"draft_tokens": i32([[1], [1]])}, TypeError, "draft_tokens: expected dtype torch.int64"),
    (finalize, {"draft_tokens": i64([[], []])}, ValueError, "gamma: expected at least one draft"),
    (finalize, {"verify_lens": i32([1])}, ValueError, "verify_lens: expected shape [2], got [1]"),
    (finalize, {"prefix": torch.zeros(2)}, TypeError, "prefix: expected dtype torch.int32 or torch.int64"),
    (finalize, {"bonus": None}, ValueError, "bonus, target_tokens: expected exactly one of them, got bonus None"),
    (finalize, {"target_tokens": TARGET}, ValueError, "expected exactly one of them, got bonus given"),
    (finalize, {"cu_seqlens": i32([0, 1, 2])}, ValueError, "cu_seqlens: expected None"),
    (finalize, {"bonus": None, "target_tokens": DRAFTS}, ValueError, "target_tokens: expected shape [2, 4]"),
    (finalize, {"bonus": None, "target_tokens": i64([0] * 7)}, ValueError, "target_tokens: expected shape [8]"),
    (finalize, {"offset": torch.zeros(2)}, ValueError, "confidence: expected a tensor, since offset is given"),
    (finalize, {"confidence": torch.zeros(2, 3)}, ValueError, "confidence: expected None, since no offset is given"),
    (finalize, {"slots": i32([0, 1])}, ValueError, "slots: expected None, since no offset is given"),
    (finalize, {"out": ACCEPTED, "prefix": ONE}, ValueError, "out.new_seq_len: expected a tensor, as prefix is given"),
    (finalize, {"out": ACCEPTED._replace(new_seq_len=RAW)}, ValueError, "out.new_seq_len: expected None"),
    (finalize, {"out": ACCEPTED._replace(trimmed=i64([0, 0]))}, TypeError, "out.trimmed: expected dtype torch.int32"),
    (finalize, {"out": ACCEPTED._replace(out_tokens=i64([[0] * 2] * 4).T)}, ValueError, "out.out_tokens: an output must be"),
    (greedy, {"cu_seqlens": i32([0, 1, 2])}, ValueError, "target_tokens: expected shape [R], got [2, 4]"),
    (greedy, {"target_tokens": TARGET.reshape(-1), "cu_seqlens": i32([0, 1])}, ValueError, "cu_seqlens: expected shape [3], got [2]"),
    (greedy, {"target_tokens": TARGET.int()}, TypeError, "target_tokens: expected dtype torch.int64, got torch.int32"),
    (greedy, {"draft_tokens": [[1]]}, TypeError, "draft_tokens: expected a torch.Tensor, got list"),
    (learn, {"offset": torch.zeros(4)}, ValueError, "offset: expected shape [3], got [4]"),
    (learn, {"offset": torch.zeros(3).double()}, TypeError, "offset: expected dtype torch.float32"),
    (learn, {"offset": torch.zeros(6)[::2]}, ValueError, "offset: an output must be contiguous"),
    (learn, {"confidence": torch.zeros(3, 2).bfloat16()}, TypeError, "confidence: expected dtype torch.float32"),
    (learn, {"correct_len": i64([0] * 3)}, TypeError, "correct_len: expected dtype torch.int32"),
    (learn, {"verify_lens": i32([1, 1])}, ValueError, "verify_lens: expected shape [3]"),
    (learn, {"slots": torch.zeros(3)}, TypeError, "slots: expected dtype torch.int32 or torch.int64"),
    (learn, {"decay": 1.5}, ValueError, "decay: expected a number in [0, 1], got 1.5"),
    (learn, {"eta": float("nan")}, ValueError, "eta: expected a number"),
    (learn, {"limit": -1.0}, ValueError, "limit: expected a number"),
    (learn, {"limit": "4"}, TypeError, "limit: expected a number, got str"),
]  # fmt: skip
