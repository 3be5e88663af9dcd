"""The self-check: it passes on sound cases, and any corrupted value makes it fail with the place of the difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import golden_data
from dspark_ops import _registry, check, golden, use_backend
from dspark_ops._backends import get_backend
from dspark_ops.testing import Mismatch


def write(directory: Path, name: str, cases: Any) -> Path:
    path = directory / f"{name}.json"
    path.write_text(json.dumps(cases))
    return path


@pytest.mark.parametrize("name", golden.CHECKS)
def test_golden_file_passes(name: str, backend: str) -> None:
    with use_backend(backend):
        outcome = check.check_file(golden_data.DIRECTORY / f"{name}.json")
    assert outcome.failures == []
    assert outcome.passed > 0


CORRUPTED = {
    "schedule_verify_lens": ["survival", "verify_lens"],
    "plan_budget": ["budget", "predicted_tau", "predicted_step_seconds", "predicted_theta"],
    "budget_planner": ["steps"],
    "tiers": ["local_tier_rows", "fill_budget", "dp_tier_rows", "round_up"],
    "ragged_layout": ["cu_seqlens", "row_request", "row_offset", "verify_ids", "strided", "padded", "padded_capped"],
    "cost_fit": ["bias", "alpha", "theta", "rms_ms", "r2", "relative_error_percent", "mbin_w", "sps_table"],
    "accept": ["correct_len", "trimmed", "commit_lens", "new_seq_lens", "out_tokens"],
    "capture_layout": ["verify_lens"],
    "sts_fit": ["temperatures", "ece_before", "ece_after"],
}


def raised(value: Any) -> Any:
    """The same nested value with its first number made wrong; of an object, the last one's."""
    if isinstance(value, dict):
        last = list(value)[-1]
        return value | {last: raised(value[last])}
    if isinstance(value, list):
        return [raised(value[0]), *value[1:]]
    if isinstance(value, dict):
        first = next(iter(value))
        return value | {first: raised(value[first])}
    return 17 if value is None else value + 1


@pytest.mark.parametrize("name, key", [(name, key) for name, keys in CORRUPTED.items() for key in keys])
def test_a_corrupted_expectation_fails(tmp_path: Path, name: str, key: str) -> None:
    case = golden_data.load(name)[3]
    assert check.check_file(write(tmp_path, name, [case])).passed == 1
    outcome = check.check_file(write(tmp_path, name, [case | {key: raised(case[key])}]))
    assert outcome.passed == 0
    assert "expected" in outcome.failures[0]


def test_every_known_file_has_a_corruption_case() -> None:
    assert CORRUPTED.keys() == golden.CHECKS.keys()


def test_a_malformed_case_and_a_malformed_file_are_failures(tmp_path: Path) -> None:
    outcome = check.check_file(write(tmp_path, "accept", [{"verify_lens": [1]}]))
    assert outcome.failures == ["case 0: KeyError: 'raw_correct_len'"]
    for text in ("{", "[]", "{}", "[" * 100_000):
        (tmp_path / "accept.json").write_text(text)
        assert check.check_file(tmp_path / "accept.json").failures


def test_directory_report(tmp_path: Path) -> None:
    case = golden_data.load("accept")[0]
    write(tmp_path, "accept", [case, case | {"trimmed": raised(case["trimmed"])}])
    write(tmp_path, "new_thing", [{}])
    report = check.check_directory(tmp_path, "reference", seconds=0)
    assert (report.passed, report.failed) == (1, 1)
    assert report.notes[0] == "no checker yet for: new_thing.json"
    assert "only the reference" in report.notes[1]


def test_random_part_runs_every_operator_at_least_once(backend: str) -> None:
    outcomes = check.random_equality([backend], "cpu", seconds=0)
    served = [f"random {s} ({backend})" for s in _registry.stems() if get_backend(backend).serves(s)]
    assert [o.name for o in outcomes] == served
    assert all(o.passed == 1 and not o.failures for o in outcomes)


def test_random_part_reports_the_seed_of_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def differ(stem: str, args: Any, backend: str) -> None:
        raise Mismatch(f"{stem}: out[0] is 1, the reference says 0")

    monkeypatch.setattr(check, "compare", differ)
    outcome = check.random_equality(["cpu"], "cpu", seconds=0)[0]
    assert outcome.failures == [f"seed {check.FIRST_SEED}: {_registry.stems()[0]}: out[0] is 1, the reference says 0"]


def test_nothing_to_check_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a folder with at least one of"):
        check.check_directory(tmp_path)
    with pytest.raises(ValueError, match="expected a folder with at least one of"):
        check.check_directory(tmp_path / "missing")
    with pytest.raises(ValueError, match="backend: expected one of"):
        check.check_directory(golden_data.DIRECTORY, "no such")
    with pytest.raises(ValueError, match="seconds: expected a number"):
        check.check_directory(golden_data.DIRECTORY, seconds=float("nan"))
