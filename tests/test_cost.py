"""Cost tables: the formulas, SGLang's step times, JSON in and out, bad files, failed saves."""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_right
from pathlib import Path

import pytest
import torch
from damage import check_damaged

import golden_data
from dspark_ops import AdditiveTable, FloorTable, StepCost, load_cost_table
from dspark_ops.cost import CostTable

GOLDEN = golden_data.load("plan_budget")
FLOOR = FloorTable([2, 5, 9], [100.0, 50.0, 40.0], 16)
ADDITIVE = AdditiveTable(0.01, [1, 5], [0.001, 0.003], [4, 8, 10], [-0.002, 0.002, 0.0025])


def load(tmp_path: Path, table: object) -> CostTable:
    path = tmp_path / "table.json"
    path.write_text(table if isinstance(table, str) else json.dumps(table))
    return load_cost_table(path)


def test_golden_step_times(tmp_path: Path) -> None:
    kinds = set()
    for c in GOLDEN:
        cost: StepCost = load(tmp_path, c["table"])
        num_reqs = len(c["survival"])
        rows = num_reqs + c["budget"]
        got = cost.base(num_reqs) + int(cost.row(rows)[rows])
        assert abs(got - c["predicted_step_seconds"] * 1e9) <= 1.0
        kinds.add(type(cost))
    assert kinds == {FloorTable, AdditiveTable}


def test_floor_row_by_hand() -> None:
    ms = [10, 10, 10, 10, 10, 20, 20, 20, 20, 25, 25, 25]
    assert FLOOR.row(11).tolist() == [m * 1_000_000 for m in ms]
    assert FLOOR.row(3).tolist() == [10_000_000] * 4
    assert FLOOR.row(0).tolist() == [10_000_000]
    assert FLOOR.base(7) == 0


def test_additive_by_hand() -> None:
    us = [-2000] * 5 + [-1000, 0, 1000, 2000, 2250, 2500, 2500]
    assert ADDITIVE.row(11).tolist() == [u * 1000 for u in us]
    assert ADDITIVE.row(2).tolist() == [-2_000_000] * 3
    assert [ADDITIVE.base(b) for b in (0, 1, 2, 3, 5, 99)] == [x * 500_000 for x in (22, 22, 23, 24, 26, 26)]


def test_one_probe_each() -> None:
    table = AdditiveTable(0.01, [3], [0.001], [4], [0.002])
    assert table.row(6).tolist() == [2_000_000] * 7 and table.base(0) == table.base(8) == 11_000_000


@pytest.mark.parametrize("max_rows", [0, 1, 6, 40, 300])
def test_rows_against_bisect(max_rows: int) -> None:
    for seed in range(20):
        g = torch.Generator().manual_seed(seed)
        probes = sorted(set(torch.randint(seed % 5, 200, (1 + seed,), generator=g).tolist()))
        times = (torch.rand(len(probes), generator=g, dtype=torch.float64) * 0.1 + 1e-4).tolist()
        floor = FloorTable(probes, [1 / t for t in times], 400).row(max_rows).tolist()
        theta = AdditiveTable(0.01, [1], [0.0], probes, times).row(max_rows).tolist()
        for m in range(max_rows + 1):
            i = max(bisect_right(probes, m) - 1, 0)
            assert abs(floor[m] - times[i] * 1e9) <= 1
            if m <= probes[0] or i == len(probes) - 1:
                want = times[i]
            else:
                share = (m - probes[i]) / (probes[i + 1] - probes[i])
                want = times[i] * (1 - share) + times[i + 1] * share
            assert abs(theta[m] - want * 1e9) <= 0.51


def test_very_fast_steps_take_1_ns() -> None:
    assert FloorTable([1], [1e12], 1).row(1).tolist() == [1, 1]


def test_row_is_cached_int32_and_contiguous() -> None:
    for table in (FLOOR, ADDITIVE):
        row = table.row(20)
        assert row is table.row(20, torch.device("cpu"), num_reqs=3)
        assert row is not table.row(21)
        assert row.dtype is torch.int32 and row.is_contiguous()
        assert table.row(20, "meta").device.type == "meta"
        assert isinstance(table, StepCost)
    with pytest.raises(ValueError, match="max_rows: expected an int in"):
        FLOOR.row(-1)
    with pytest.raises(ValueError, match="num_reqs: expected an int >= 0"):
        ADDITIVE.base(-1)


def test_is_flat() -> None:
    assert FloorTable([1], [1.0], 512).is_flat  # what SGLang starts with when it has no table
    assert FloorTable([1, 9], [50.0, 50.0], 512).is_flat
    assert AdditiveTable(0.01, [1, 2], [0.0, 0.1], [1, 9], [0.001, 0.001]).is_flat
    assert not FLOOR.is_flat and not ADDITIVE.is_flat


def test_json_is_sglangs_unchanged(tmp_path: Path) -> None:
    for c in GOLDEN:
        text = json.dumps(c["table"], separators=(",", ":"))
        table = load(tmp_path, text)
        assert json.loads(table.to_json()) == c["table"]
        assert list(json.loads(table.to_json())) == list(c["table"])
        assert type(table).from_json(table.to_json()) == table


def test_tables_are_immutable_values() -> None:
    probes = [1, 2]
    table = FloorTable(probes, [2.0, 1.0], 2)
    probes[0] = 99
    table.row(4)
    same = FloorTable((1, 2), (2.0, 1.0), 2)
    assert table == same and hash(table) == hash(same)
    with pytest.raises(AttributeError):
        table.max_batch_tokens = 9


def floor(**change: object) -> str:
    return json.dumps({**json.loads(FLOOR.to_json()), **change})


def additive(**change: object) -> str:
    return json.dumps({**json.loads(ADDITIVE.to_json()), **change})


def without(text: str, field: str) -> str:
    return json.dumps({k: v for k, v in json.loads(text).items() if k != field})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ('{"a": 1', "not a JSON object"),
        ('{"bias_seconds": ' + "[" * 100_000, "not a JSON object"),
        (floor(sample_steps_per_sec="[").replace('"["', "[" * 400 + "]" * 400), "sample_steps_per_sec"),
        (floor().replace("100.0", "1" + "0" * 400), "sample_steps_per_sec"),
        (floor(sample_batch_tokens=[2, 5, 10**400]), "sample_batch_tokens: expected integers in"),
        (floor(sample_batch_tokens=[2, 10**400, 9]), "sample_batch_tokens: expected strictly increasing"),
        (floor(max_batch_tokens=10**400), "max_batch_tokens: expected an int in"),
        ("{}", "expected the fields of one cost table .* got none"),
        ('{"temperatures": [1]}', "got temperatures"),
        (without(floor(), "max_batch_tokens"), "missing required field `max_batch_tokens`"),
        (without(additive(), "bias_seconds"), "missing required field `bias_seconds`"),
        (floor(extra=1), "unknown field `extra`"),
        (additive(max_batch_tokens=1), "unknown field `max_batch_tokens`"),
        (floor(sample_batch_tokens=[]), "sample_batch_tokens: expected at least one probe"),
        (floor(sample_batch_tokens=[2, 2, 9]), "sample_batch_tokens: expected strictly increasing .* 2 after 2"),
        (floor(sample_batch_tokens=[-2, 2, 9]), "sample_batch_tokens: expected integers in"),
        (floor(sample_batch_tokens=[2, 5, "9"]), r"got `str` - at `\$.sample_batch_tokens\[2\]`"),
        (floor(sample_batch_tokens=[2, 5, 8.5]), r"got `float` - at `\$.sample_batch_tokens\[2\]`"),
        (floor(sample_steps_per_sec=[1.0, 2.0]), "sample_steps_per_sec: expected 3 numbers, .* got 2"),
        (floor(sample_steps_per_sec=[1.0, 2.0, 0.0]), r"sample_steps_per_sec\[2\]: expected a positive speed"),
        (floor(sample_steps_per_sec=[1.0, -2.0, 1.0]), r"sample_steps_per_sec\[1\]: expected a positive speed"),
        (floor(sample_steps_per_sec=[0.4, 2.0, 1.0]), r"sample_steps_per_sec\[0\]: .* fits int32"),
        (floor(sample_steps_per_sec=[math.nan, 2.0, 1.0]), "not a JSON object"),
        (floor().replace("100.0", "1e999"), "sample_steps_per_sec"),
        (floor(max_batch_tokens=8), r"max_batch_tokens: expected an int in \[9, 2147483647\], got 8"),
        (floor(max_batch_tokens=True), "max_batch_tokens"),
        (additive(bias_seconds=0.0), "bias_seconds: expected a number > 0"),
        (additive(bs_probes=[5, 1]), "bs_probes: expected strictly increasing"),
        (additive(alpha_seconds=[1.0]), "alpha_seconds: expected 2 numbers"),
        (additive(m_probes=[]), "m_probes: expected at least one probe"),
        (additive(theta_seconds=[0.0, 0.0, None]), r"theta_seconds\[2\]"),
        (additive(theta_seconds=[0.0, 0.0, 3.0]), r"theta_seconds\[2\]: expected a time that fits int32"),
        (additive(theta_seconds=[0.0, 0.0, -0.0125]), r"theta_seconds: expected every sum in \(0, 2.1"),
        (additive(bias_seconds=2.2), r"bias_seconds \+ .*expected every sum in \(0, 2.1"),
    ],
)
def test_bad_file(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as error:
        load(tmp_path, text)
    assert str(tmp_path / "table.json") in str(error.value)


def test_damaged_files_are_value_errors(tmp_path: Path) -> None:
    for table in (FLOOR, ADDITIVE):
        table.save(tmp_path / "t.json")
        assert check_damaged(load_cost_table, tmp_path / "t.json", 200) > 100


def test_bad_values_in_python() -> None:
    with pytest.raises(ValueError, match="bias_seconds: expected a finite number, got 1000"):
        AdditiveTable(10**400, [1], [0.0], [1], [0.0])
    with pytest.raises(ValueError, match=r"theta_seconds\[0\]: expected a finite number, got 1000"):
        AdditiveTable(0.1, [1], [0.0], [1], [10**400])
    with pytest.raises(ValueError, match=r"sample_steps_per_sec\[0\]: expected a finite number, got 1000"):
        FloorTable([1], [10**400], 2)
    with pytest.raises(TypeError, match="sample_batch_tokens: expected integers"):
        FloorTable([1.5], [1.0], 2)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="sample_batch_tokens: expected a list of integers, got int"):
        FloorTable(3, [1.0], 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"sample_steps_per_sec\[0\]: expected a finite number, got nan"):
        FloorTable([1], [math.nan], 2)
    with pytest.raises(TypeError, match="bias_seconds: expected a number, got str"):
        AdditiveTable("1", [1], [0.0], [1], [0.0])  # type: ignore[arg-type]


def test_save_and_load(tmp_path: Path) -> None:
    for table in (FLOOR, ADDITIVE):
        table.save(tmp_path / "t.json")
        assert load_cost_table(tmp_path / "t.json") == table
    assert os.listdir(tmp_path) == ["t.json"]


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    path = tmp_path / "t.json"
    FLOOR.save(path)

    def fail(*args: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="no space left"):
        ADDITIVE.save(path)
    assert load_cost_table(path) == FLOOR and os.listdir(tmp_path) == ["t.json"]
