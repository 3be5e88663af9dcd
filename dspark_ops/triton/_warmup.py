"""Compiles ahead, so that no decode step waits seconds for a compiler."""

from __future__ import annotations

from collections.abc import Callable

import torch

import dspark_ops

LEAST_BATCH = 16  # smaller batches are padded to it


def batches(max_batch: int) -> list[int]:
    """The batch sizes that stand for all up to `max_batch`: kernels are compiled per power of two, from 16 up."""
    sizes, size = [], LEAST_BATCH
    while size < max_batch:
        sizes.append(size)
        size *= 2
    return [*sizes, max(1, max_batch)]


def warmup(
    max_batch: int, gamma: int, device: torch.device | str = "cuda", step: Callable[[int], object] | None = None
) -> None:
    """Run one step of each padded batch size, so that every kernel it launches is compiled and loaded.

    A kernel is compiled once per power of two of the batch (from 16 up; past one program all batches share their
    kernels) and γ, and per argument form: which tensors are given, their dtypes, `search`. Nothing else counts: not the
    batch itself, a budget, a base, a bound, a slot count, the tiers, nor how a pointer is aligned.

    Args:
        max_batch: the most requests of a step.
        gamma: draft tokens per request.
        device: where the steps run.
        step: calls the operators as the runtime does, for a batch of that size. Default: `allocate_verify_lens` on
            float32 confidences with caps and tiers, thrice: with slot-major history and generations; with
            ``search="first_drop"``; with a budget scalar. Then `ragged_layout` with all outputs and a compact
            `accept_greedy`.
    """
    if step is None:
        step = _default_step(gamma, torch.device(device))
    for batch in batches(max_batch):
        step(batch)
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def _default_step(gamma: int, device: torch.device) -> Callable[[int], object]:
    def step(batch: int) -> None:
        confidence = torch.zeros(batch, gamma, device=device)
        slots = torch.zeros(batch, dtype=torch.int64, device=device)
        step_ns = torch.ones(batch * (gamma + 1) + 1, dtype=torch.int32, device=device)
        base = torch.zeros(1, dtype=torch.int64, device=device)
        caps = torch.ones(batch, dtype=torch.int32, device=device)
        tiers = torch.ones(1, dtype=torch.int32, device=device)
        allocate = dspark_ops.allocate_verify_lens
        allocate(
            confidence, step_ns, base, caps=caps, tiers=tiers, history=confidence, history_slots=slots,
            generation=slots, expected=slots,
        )  # fmt: skip
        allocate(confidence, step_ns, base, caps=caps, tiers=tiers, search="first_drop")
        lens = allocate(confidence, step_ns, base, caps=caps, tiers=tiers, budget=base).verify_lens
        drafts = torch.zeros(batch, gamma, dtype=torch.int64, device=device)
        layout = dspark_ops.ragged_layout(
            lens, batch * (gamma + 1), prefix=slots, root_tokens=slots, draft_tokens=drafts
        )
        target = torch.zeros_like(layout.row_request, dtype=torch.int64)
        dspark_ops.accept_greedy(drafts, target, lens, slots, cu_seqlens=layout.cu_seqlens)

    return step
