"""Records raw confidence logits and accepted lengths of a running server, in shards that SGLang's fitter reads too.

A calibration may be fitted only to what the head said and to outcomes that were seen in full. So the recorder refuses
logits that a calibration has already changed, and steps in which a draft was trimmed: a trimmed draft was never judged,
and counting it as rejected teaches the calibration to trim.
"""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .. import _checks
from .._files import write_atomic
from .samples import ACCEPTANCES, Samples, check_acceptance
from .tables import Calibration


class StsRecorder:
    """Collects steps on the host and writes them as ``<stem>.<number>.pt``, each file appearing when it is whole.

    A shard is a dict of `logits` float32 [n, γ] and `prefix_mask` float32 [n, γ] (SGLang's), `acceptance`, and
    `request` int64 [n] where it was given. Numbers go on after the shards that are already there. `record` copies to
    the host and so waits for the device: for a collecting run, not for service. One rank records, not each.

    Args:
        stem: path of the shards without number and suffix; its folder is made.
        gamma: γ of the draft.
        acceptance: how the server accepts, "greedy" or "sampled".
        calibration: the one in force. Anything but the identity is refused: collect first, calibrate then.
        flush_every: calls of `record` per shard.
    """

    def __init__(
        self,
        stem: str | os.PathLike[str],
        gamma: int,
        acceptance: str,
        *,
        calibration: Calibration | None = None,
        flush_every: int = 64,
    ) -> None:
        _checks.integer("gamma", gamma, 1, _checks.MAX_VERIFY_ROWS)
        _checks.integer("flush_every", flush_every, 1)
        if calibration is not None:
            calibration.check_serves(gamma, acceptance)
            if not calibration.is_identity:
                raise ValueError(
                    "calibration: expected none, or the identity, while recording: a fit needs the head's raw logits, "
                    f"got {calibration.to_json()}"
                )
        self.gamma, self.acceptance, self.flush_every = gamma, check_acceptance(acceptance), flush_every
        self._stem = Path(stem)
        self._stem.parent.mkdir(parents=True, exist_ok=True)
        self._number = max((n for n, _ in _numbered(self._stem)), default=-1) + 1
        self._steps: list[Samples] = []
        self._names_requests: bool | None = None  # known with the first call

    def __enter__(self) -> StsRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def record(
        self,
        logits: Tensor,
        correct_len: Tensor,
        verify_lens: Tensor | None = None,
        request_ids: Tensor | None = None,
    ) -> None:
        """Keep one step.

        Args:
            logits: z as the head gave it, float [B, γ]; not a confidence, not divided by a temperature.
            correct_len: accepted drafts before any cap, integer [B]. Of a cap-accept step that is `correct_len` +
                `trimmed`.
            verify_lens: rows whose outcome was seen, integer [B]: γ + 1, or 0 for an inactive request, which is left
                out. Anything between is refused. Default: all were.
            request_ids: integer [B], an id per request that no later request gets; the per-request offset is fitted by
                it. All calls give it or none does.
        """
        z = logits.detach().to("cpu", torch.float32)
        if z.dim() != 2 or z.shape[1] != self.gamma:
            raise ValueError(f"logits: expected shape [B, {self.gamma}] (γ of this recorder), got {list(z.shape)}")
        ids = None if request_ids is None else request_ids.detach().cpu().long()
        step = Samples(z, correct_len.detach().cpu().long(), self.acceptance, ids)
        if verify_lens is not None:
            lens = verify_lens.detach().cpu().long()
            _checks.tensor("verify_lens", lens, torch.int64, [len(z)])
            trimmed = (lens != self.gamma + 1) & (lens != 0)
            if trimmed.any():
                r = int(trimmed.nonzero()[0])
                raise ValueError(
                    f"verify_lens[{r}]: expected {self.gamma + 1} (every draft verified) or 0, got {int(lens[r])}: "
                    "a trimmed step does not tell what its other drafts were worth"
                )
            step = step[lens > 0]
        if self._names_requests not in (None, ids is not None):
            raise ValueError("request_ids: expected in every call or in none")
        self._names_requests = ids is not None
        self._steps.append(step)
        if len(self._steps) >= self.flush_every:
            self.flush()

    def flush(self) -> None:
        """Write what is held as the next shard, if there is anything."""
        held = Samples.concatenate(self._steps) if self._steps else None
        if held is not None and len(held):
            shard: dict[str, Any] = {
                "logits": held.logits,
                "prefix_mask": held.outcome.float(),
                "acceptance": self.acceptance,
            }
            if held.request is not None:
                shard["request"] = held.request
            data = io.BytesIO()
            torch.save(shard, data)
            write_atomic(f"{self._stem}.{self._number:05d}.pt", data.getvalue())
            self._number += 1
        self._steps = []


def _numbered(stem: Path) -> list[tuple[int, Path]]:
    """The shards of a stem with their numbers, ascending."""
    found = []
    for path in stem.parent.glob(f"{glob.escape(stem.name)}.*.pt"):
        number = path.name[len(stem.name) + 1 : -len(".pt")]
        if number.isascii() and number.isdigit():
            found.append((int(number), path))
    return sorted(found)


def load_shards(paths: Sequence[str | os.PathLike[str]], acceptance: str | None = None) -> Samples:
    """The samples in shard files, in the order given.

    Args:
        paths: at least one file of `StsRecorder` or of SGLang's collector.
        acceptance: the event, for files that do not say it (SGLang's do not; they hold greedy prefixes). A file that
            says something else is an error.

    Raises ValueError naming the file for one that is damaged, is no shard, has another γ or holds another event.
    """
    if acceptance is not None:
        check_acceptance(acceptance)
    parts = []
    for path in paths:
        try:
            parts.append(_read_shard(Path(path), acceptance))
            parts[0].check_joins(parts[-1])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return Samples.concatenate(parts)


def _read_shard(path: Path, acceptance: str | None) -> Samples:
    data = io.BytesIO(path.read_bytes())
    try:
        shard = torch.load(data, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged archive may raise almost anything
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"expected a shard written by torch.save ({reason})") from None
    if not isinstance(shard, dict) or not all(isinstance(shard.get(k), Tensor) for k in ("logits", "prefix_mask")):
        raise ValueError("expected a dict with the tensors logits and prefix_mask")
    logits, mask = shard["logits"], shard["prefix_mask"]
    for name, t in (("logits", logits), ("prefix_mask", mask)):
        if t.layout != torch.strided or t.is_complex():
            raise ValueError(f"{name}: expected a dense tensor of real numbers, got {t.dtype}, {t.layout}")
    if mask.shape != logits.shape:
        raise ValueError(f"prefix_mask: expected shape {list(logits.shape)}, got {list(mask.shape)}")
    if mask.dim() != 2 or not torch.equal(mask.float(), mask.float().cummin(1).values.eq(1).float()):
        raise ValueError("prefix_mask: expected rows of ones followed by zeros")
    request = shard.get("request")
    if request is not None and not isinstance(request, Tensor):
        raise ValueError(f"request: expected a tensor, got {type(request).__name__}")
    said = shard.get("acceptance", acceptance)
    if said is None:
        raise ValueError(f"acceptance: the file does not say which event it holds, name it: {', '.join(ACCEPTANCES)}")
    if acceptance is not None and said != acceptance:
        raise ValueError(f"acceptance: expected {acceptance}, got {said}")
    return Samples(logits.float(), mask.sum(1).long(), said, request)
