"""Recorded decode steps (`Trace`), checked when they are loaded."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np

Array = np.ndarray[Any, Any]

_MAX_INT = (1 << 31) - 1
_NAME_LISTS = {"domains": "domain_names", "datasets": "dataset_names"}


@dataclass(frozen=True)
class _Spec:
    """What a field must be: dtype kind, shape (letters stand for sizes), and an inclusive range of values."""

    kind: str
    shape: tuple[str, ...]
    low: float = 0
    high: float | str = _MAX_INT


def _int(low: int, high: int | str, *shape: str) -> _Spec:
    """Signed integers in [low, high]; high may be a letter: γ, N, or the number of entries of a name list."""
    return _Spec("i", ("S", *shape), low, high)


def _float(low: float, high: float, *shape: str) -> _Spec:
    return _Spec("f", ("S", *shape), low, high)


@dataclass(frozen=True, eq=False)
class Trace:
    """Decode steps in the order they were taken: S rows, the rows of a request together, its steps counted from 0.

    Logits (`z`, `z_refit`) are raw confidence-head outputs. `prefix_len` counts the root. `correct_len` is not cut by
    the end of a request; `commit_len` is. examples/traces/README.md describes every field.
    """

    request_id: Annotated[Array, _int(0, _MAX_INT)]
    step: Annotated[Array, _int(0, _MAX_INT)]
    domain: Annotated[Array, _int(0, "domains")]
    dataset: Annotated[Array, _int(0, "datasets")]
    src_index: Annotated[Array, _int(0, _MAX_INT)]
    prompt_len: Annotated[Array, _int(1, _MAX_INT)]
    prefix_len: Annotated[Array, _int(1, _MAX_INT)]
    anchor_token: Annotated[Array, _int(0, _MAX_INT)]
    draft_tokens: Annotated[Array, _int(0, _MAX_INT, "γ")]
    target_argmax: Annotated[Array, _int(0, _MAX_INT, "N")]
    z: Annotated[Array, _float(-np.inf, np.inf, "γ")]
    z_refit: Annotated[Array, _float(-np.inf, np.inf, "γ")]
    soft_accept: Annotated[Array, _float(0.0, 1.0, "γ")]
    correct_len: Annotated[Array, _int(0, "γ")]
    argmax_prefix_len: Annotated[Array, _int(0, "γ")]
    bonus_token: Annotated[Array, _int(0, _MAX_INT)]
    commit_len: Annotated[Array, _int(1, "N")]
    domain_names: Annotated[Array, _Spec("U", ("domains",))]
    dataset_names: Annotated[Array, _Spec("U", ("datasets",))]

    @property
    def gamma(self) -> int:
        """γ, draft tokens per step."""
        return int(self.draft_tokens.shape[1])

    @property
    def request_starts(self) -> Array:
        """Row of each request's first step."""
        return np.flatnonzero(self.step == 0)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read an .npz trace. ValueError naming the file and the field when anything is not as described."""
        specs = {name: hint.__metadata__[0] for name, hint in get_type_hints(cls, include_extras=True).items()}
        arrays = _read_npz(Path(path), list(specs))
        try:
            sizes = _sizes(arrays)
            for name, spec in specs.items():
                _check_field(name, arrays[name], spec, sizes)
            _check_steps(arrays)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        return cls(**arrays)


def _read_npz(path: Path, names: list[str]) -> dict[str, Array]:
    """The named arrays. In a damaged archive zipfile and numpy may raise almost anything, hence the broad clauses."""
    data = io.BytesIO(path.read_bytes())
    try:
        archive = np.load(data, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("a single array")
    except Exception as error:
        raise ValueError(f"{path}: expected an .npz archive without pickled objects ({_reason(error)})") from None
    arrays = {}
    with archive:
        for name in names:
            if name not in archive.files:
                raise ValueError(f"{path}: {name}: the field is missing")
            try:
                arrays[name] = archive[name]
            except Exception as error:
                expected = "an array without pickled objects in an .npz archive"
                raise ValueError(f"{path}: {name}: expected {expected} ({_reason(error)})") from None
            if not isinstance(arrays[name], np.ndarray):
                raise ValueError(f"{path}: {name}: expected an array, got other bytes")
    return arrays


def _reason(error: Exception) -> str:
    """The first line of the message; some errors have none, and numpy's quote the header."""
    return next(iter(str(error).splitlines()), "")[:200] or type(error).__name__


def _sizes(arrays: dict[str, Array]) -> dict[str, int]:
    """S, γ and the others, each read from the one field that defines it."""
    if arrays["draft_tokens"].ndim != 2 or 0 in arrays["draft_tokens"].shape:
        raise ValueError(f"draft_tokens: expected shape [S, γ], not empty, got {list(arrays['draft_tokens'].shape)}")
    steps, gamma = arrays["draft_tokens"].shape
    names = {key: arrays[name].size for key, name in _NAME_LISTS.items()}
    return {"S": steps, "γ": gamma, "N": gamma + 1, **names}


def _check_field(name: str, a: Array, spec: _Spec, sizes: dict[str, int]) -> None:
    expected = {"i": "a signed integer dtype", "f": "float32", "U": "strings"}[spec.kind]
    if a.dtype.kind != spec.kind or (spec.kind == "f" and a.dtype != np.float32):
        raise ValueError(f"{name}: expected {expected}, got {a.dtype}")
    shape = [sizes[letter] for letter in spec.shape]
    if list(a.shape) != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {list(a.shape)}")
    if spec.kind == "U":
        return
    high = sizes[spec.high] - (spec.high in _NAME_LISTS) if isinstance(spec.high, str) else spec.high
    bad = ~((a >= spec.low) & (a <= high) & np.isfinite(a))
    if bad.any():
        raise ValueError(f"{name}: expected finite values in [{spec.low}, {high}], got {a[bad][0]}")


def _check_steps(arrays: dict[str, Array]) -> None:
    """Rows of a request lie together and follow one another: each step starts from what the one before it gave."""
    names = ("step", "prefix_len", "correct_len", "commit_len", "anchor_token", "bonus_token")
    step, length, correct, commit, anchor, bonus = (arrays[name].astype(np.int64) for name in names)
    request = arrays["request_id"]
    new = np.concatenate([[True], request[1:] != request[:-1]])
    want = np.where(new, 0, np.concatenate([[0], step[:-1] + 1]))
    if (step != want).any() or new.sum() != len(np.unique(request)):
        raise ValueError("step: expected the rows of each request together, numbered 0, 1, 2, ...")
    goes_on = ~new[1:]
    if (goes_on & (length[1:] != length[:-1] + correct[:-1] + 1)).any():
        raise ValueError("prefix_len: expected the previous step's prefix_len + correct_len + 1 within a request")
    if (goes_on & (anchor[1:] != bonus[:-1])).any():
        raise ValueError("anchor_token: expected the previous step's bonus_token within a request")
    if (commit > correct + 1).any() or (goes_on & (commit[:-1] != correct[:-1] + 1)).any():
        raise ValueError("commit_len: expected correct_len + 1, or less at a request's last step")
