"""`ragged_layout`: per-row tensors, verify ids and KV geometry of a compact verify batch (DESIGN 3.6)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .. import _checks
from .._registry import operator
from ..reference.ragged_layout import ragged_layout as reference


class RaggedLayout(NamedTuple):
    """What a compact verify step needs to know about its rows. B requests, R rows."""

    cu_seqlens: Tensor  # int32[B + 1]: request i owns rows cu_seqlens[i] .. cu_seqlens[i + 1] - 1
    row_request: Tensor  # int32[R]: request of the row, -1 on padding
    row_offset: Tensor  # int32[R]: place in the request, 0 is the root; 0 on padding
    position: Tensor | None = None  # int64[R]: absolute position, 0 on padding
    verify_ids: Tensor | None = None  # int64[R]: token to verify, 0 on padding
    cache_seqlens: Tensor | None = None  # int32[B]: tokens the request attends to
    cu_seqlens_k: Tensor | None = None  # int32[B + 1]: running sum of cache_seqlens

    def max_verify_len(self) -> int:
        """Longest verify length, 0 without requests. For host tensors only: on a device it would synchronise."""
        if self.cu_seqlens.device.type != "cpu":
            raise ValueError(f"max_verify_len: expected a layout on cpu, got one on {self.cu_seqlens.device}")
        return int(self.cu_seqlens.diff().max()) if self.cu_seqlens.numel() > 1 else 0


def _check(
    verify_lens: Tensor,
    prefix: Tensor | None,
    root_tokens: Tensor | None,
    draft_tokens: Tensor | None,
    cu_seqlens: Tensor,
    row_request: Tensor,
    row_offset: Tensor,
    position: Tensor | None,
    verify_ids: Tensor | None,
    cache_seqlens: Tensor | None,
    cu_seqlens_k: Tensor | None,
) -> None:
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    batch, device = verify_lens.shape[0], verify_lens.device
    _checks.optional("prefix", prefix, _checks.INDEX_DTYPES, [batch], device)
    _checks.optional("root_tokens", root_tokens, torch.int64, [batch], device)
    _checks.optional("draft_tokens", draft_tokens, torch.int64, [batch, "gamma"], device)
    if draft_tokens is not None:
        _checks.verify_width(batch, draft_tokens.shape[1])
    if (root_tokens is None) != (draft_tokens is None):
        raise ValueError("root_tokens, draft_tokens: expected both or neither, got one")
    if prefix is None and not (position is None and cache_seqlens is None and cu_seqlens_k is None):
        raise ValueError("prefix: expected a tensor, since position, cache_seqlens or cu_seqlens_k is wanted; got None")
    if root_tokens is None and verify_ids is not None:
        raise ValueError("root_tokens, draft_tokens: expected tensors, since verify_ids is wanted; got None")
    _checks.output("out.cu_seqlens", cu_seqlens, torch.int32, [batch + 1], device)
    _checks.output("out.row_request", row_request, torch.int32, ["R"], device)
    rows = row_request.shape[0]
    _checks.output("out.row_offset", row_offset, torch.int32, [rows], device)
    _checks.optional_output("out.position", position, torch.int64, [rows], device)
    _checks.optional_output("out.verify_ids", verify_ids, torch.int64, [rows], device)
    _checks.optional_output("out.cache_seqlens", cache_seqlens, torch.int32, [batch], device)
    _checks.optional_output("out.cu_seqlens_k", cu_seqlens_k, torch.int32, [batch + 1], device)


_op = operator(
    "ragged_layout(Tensor verify_lens, Tensor? prefix, Tensor? root_tokens, Tensor? draft_tokens, "
    "Tensor(a!) cu_seqlens, Tensor(b!) row_request, Tensor(c!) row_offset, Tensor(d!)? position, "
    "Tensor(e!)? verify_ids, Tensor(f!)? cache_seqlens, Tensor(g!)? cu_seqlens_k) -> ()",
    reference,
    _check,
)


def _allocate(verify_lens: Tensor, rows: int, prefix: bool, tokens: bool) -> RaggedLayout:
    def new(size: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(size, dtype=dtype, device=verify_lens.device)

    batch = verify_lens.numel()
    return RaggedLayout(
        new(batch + 1, torch.int32),
        new(rows, torch.int32),
        new(rows, torch.int32),
        new(rows, torch.int64) if prefix else None,
        new(rows, torch.int64) if tokens else None,
        new(batch, torch.int32) if prefix else None,
        new(batch + 1, torch.int32) if prefix else None,
    )


def ragged_layout(
    verify_lens: Tensor,
    rows: int,
    *,
    prefix: Tensor | None = None,
    root_tokens: Tensor | None = None,
    draft_tokens: Tensor | None = None,
    out: RaggedLayout | None = None,
) -> RaggedLayout:
    """Rows of a compact verify batch: request i owns ``l_i`` rows in a row, in request order.

    With ``cu[0] = 0, cu[i + 1] = cu[i] + l_i``, row t < R of request i (``cu[i] <= t < cu[i + 1]``) has
    ``row_request = i``, ``row_offset = k = t - cu[i]``, ``position = s_i + k`` and
    ``verify_ids = root_tokens[i]`` for k = 0, else ``draft_tokens[i, k - 1]`` (0 past γ). Per request
    ``cache_seqlens = s_i + l_i``. Rows that no request owns are padding: request -1, everything else 0. Rows at or past
    R are dropped, while `cu_seqlens` keeps the true total.

    Args:
        verify_lens: l, int32 [B]; negative counts as 0, and a request with 0 owns no row.
        rows: R, the row capacity of the buffer or captured graph.
        prefix: s, int32 or int64 [B]: cached tokens, the root excluded. Needed for position and the KV geometry.
        root_tokens: int64 [B], with draft_tokens needed for verify_ids.
        draft_tokens: int64 [B, γ], B·(γ + 1) <= 2^18.
        out: a `RaggedLayout` to write into, such as an earlier result; a field that is None is not computed.

    Returns:
        `RaggedLayout`. Sums saturate at 2^31 - 1, and cache_seqlens is clamped to [0, 2^31 - 1].

    Raises:
        TypeError, ValueError: a wrong dtype, shape, device or range, naming the argument.

    Capture: `rows` and the shapes are fixed; every input tensor may change on replay.

    Source: the ragged verify metadata of SGLang's DSpark worker, with -1 in place of its sentinel B on padding.
    """
    _checks.tensor("verify_lens", verify_lens, torch.int32, ["B"])
    _checks.integer("rows", rows, 0, (1 << 31) - 1)
    if out is None:
        out = _allocate(verify_lens, rows, prefix is not None, root_tokens is not None)
    else:
        _checks.result("out", out, RaggedLayout)
        _checks.output("out.row_request", out.row_request, torch.int32, [rows], verify_lens.device)
    _op(verify_lens, prefix, root_tokens, draft_tokens, *out)
    return out
