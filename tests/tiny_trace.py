"""A hand-made greedy trace: each request is a list of correct lengths, tokens are counted up."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def arrays(requests: list[list[int]], gamma: int = 2, logit: float = 1.0) -> dict[str, np.ndarray]:
    """The fields of a valid trace; every logit of accepted drafts is `logit`, of the others -`logit`."""
    rows = [(r, i, c) for r, lens in enumerate(requests) for i, c in enumerate(lens)]
    request, step, correct = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    starts = np.cumsum(correct + 1) - (correct + 1)
    first = np.array([starts[(request == r)][0] for r in request])
    prefix = 10 + starts - first + 1
    draft = 100 + 10 * np.arange(len(rows))[:, None] + np.arange(gamma)
    k = np.arange(gamma)
    target = np.concatenate([np.where(k < correct[:, None], draft, draft + 5), draft[:, -1:] + 7], 1)
    z = np.where(k < correct[:, None], logit, -logit).astype(np.float32)
    bonus = np.take_along_axis(target, correct[:, None].astype(np.int64), 1)[:, 0]
    return {
        "request_id": request,
        "step": step,
        "domain": np.zeros_like(step),
        "dataset": np.zeros_like(step),
        "src_index": request,
        "prompt_len": np.full_like(step, 10),
        "prefix_len": prefix.astype(np.int32),
        "anchor_token": np.where(step == 0, np.arange(len(rows)), np.roll(bonus, 1)).astype(np.int32),
        "draft_tokens": draft.astype(np.int32),
        "target_argmax": target.astype(np.int32),
        "z": z,
        "z_refit": z.copy(),
        "soft_accept": np.full(z.shape, 0.5, np.float32),
        "correct_len": correct.astype(np.int8),
        "argmax_prefix_len": correct.astype(np.int8),
        "bonus_token": bonus.astype(np.int32),
        "commit_len": (correct + 1).astype(np.int8),
        "domain_names": np.array(["math"]),
        "dataset_names": np.array(["gsm8k"]),
    }


def save(path: Path, fields: dict[str, np.ndarray]) -> Path:
    """Write the fields as an .npz; object arrays are pickled, as a careless writer would."""
    np.savez(path, **fields, allow_pickle=True)
    return path
