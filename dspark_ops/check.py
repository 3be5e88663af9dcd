"""The self-check behind `dspark-ops check`: golden cases, and random equality with the reference."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from . import _backends, _checks, _registry, golden
from .testing import Mismatch, case, compare

# Seeds of the random part, away from those of the test suite; fixed, so that a failure can be repeated.
FIRST_SEED = 100_000


@dataclass
class Outcome:
    """Counts of one golden file, or of one operator on one back end."""

    name: str
    passed: int = 0
    failures: list[str] = field(default_factory=list)

    def record(self, label: str, check: Any, *args: Any) -> None:
        """Run one check; anything it raises is a failure of this case, not of the run (but for a missing operator)."""
        try:
            check(*args)
        except _backends.NotServed:
            raise
        except Mismatch as difference:
            self.failures.append(f"{label}: {difference}")
        except Exception as error:
            self.failures.append(f"{label}: {type(error).__name__}: {error}")
        else:
            self.passed += 1


@dataclass
class Report:
    """All outcomes, and what was not checked and why."""

    outcomes: list[Outcome]
    notes: list[str]

    @property
    def passed(self) -> int:
        """Cases that passed."""
        return sum(o.passed for o in self.outcomes)

    @property
    def failed(self) -> int:
        """Cases that failed."""
        return sum(len(o.failures) for o in self.outcomes)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"passed": self.passed, "failed": self.failed, **asdict(self)}


def check_directory(directory: Path, backend: str | None = None, seconds: float = 20.0) -> Report:
    """Check every golden file in `directory` that has a checker, then random cases for `seconds` (one round at least).

    Raises ValueError if there is no known golden file or no such back end, RuntimeError if the back end cannot run.
    """
    _checks.number("seconds", seconds, 0, 86400)
    files = sorted(directory.glob("*.json"))
    known = [path for path in files if path.stem in golden.CHECKS]
    if not known:
        raise ValueError(f"{directory}: expected a folder with at least one of {', '.join(golden.CHECKS)} (.json)")
    device = "cpu"
    if backend is not None:
        device = _backends.get_backend(backend).device or "cpu"
    notes = [f"no checker yet for: {p.name}" for p in files if p not in known]
    outcomes = []
    with nullcontext() if backend is None else _backends.use_backend(backend):
        for path in known:
            try:
                outcomes.append(check_file(path, device))
            except _backends.NotServed as reason:
                notes.append(f"not checked, {path.name}: {reason}")
    available = [name for name in _backends.available_backends("cpu") if not _backends.get_backend(name).for_tests]
    backends = [backend] if backend is not None else available
    compared = [name for name in backends if name != "reference"]
    if not compared:
        native = _backends.get_backend("cpu").available()[1]
        notes.append(f"no random cases: only the reference to compare with itself (cpu: {native})")
    return Report(outcomes + random_equality(compared, device, seconds), notes)


def check_file(path: Path, device: str = "cpu") -> Outcome:
    """Run the checker of this golden file on each of its cases; NotServed if the back end lacks an operator of it."""
    outcome = Outcome(f"golden {path.stem}")
    try:
        cases = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(cases, list) or not cases:
            raise ValueError("expected a list of cases, not empty")
    except (ValueError, OSError, RecursionError) as error:
        outcome.failures.append(f"{path}: {error}")
        return outcome
    for i, one in enumerate(cases):
        outcome.record(f"case {i}", golden.CHECKS[path.stem], one, device)
    return outcome


def random_equality(backends: list[str], device: str, seconds: float) -> list[Outcome]:
    """Operators in turn, each back end against the reference, until the time is over."""
    outcomes = {
        (b, stem): Outcome(f"random {stem} ({b})")
        for b in backends
        for stem in _registry.stems()
        if _backends.get_backend(b).serves(stem)
    }
    deadline = time.monotonic() + seconds
    seed = FIRST_SEED
    while outcomes:
        for (backend, stem), outcome in outcomes.items():
            if seed > FIRST_SEED and time.monotonic() >= deadline:
                return list(outcomes.values())
            outcome.record(f"seed {seed}", _compare, stem, seed, backend, device)
        seed += 1
    return []


def _compare(stem: str, seed: int, backend: str, device: str) -> None:
    args = tuple(a.to(device) if isinstance(a, torch.Tensor) else a for a in case(stem, seed))
    compare(stem, args, backend)
