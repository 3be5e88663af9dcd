"""Measured step times: the row they give, both file forms, and what is refused with which words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from damage import check_damaged

from dspark_ops.cost.cells import Cell, CostCells

CELLS = [
    {"bs": 2, "M": 4, "T": 3e-6},
    {"bs": 2, "M": 2, "T": 1e-6},
    {"bs": 6, "M": 6, "T": 8e-6},
    {"bs": 6, "M": 6, "T": 4e-6},
    {"bs": 6, "M": 6, "T": 5e-6},
]


def test_step_time_is_linear_between_cells_and_clamped() -> None:
    cells = CostCells.from_list(CELLS)
    assert cells.step_ns(2, 6).tolist() == [1000, 1000, 1000, 2000, 3000, 3000, 3000]
    assert cells.step_ns(2, 6).dtype is torch.int32
    assert cells.step_ns(6, 7).tolist() == [5000] * 8, "repeated cells give their median"
    assert [cells.nearest(n) for n in (1, 3, 4, 5, 100)] == [2, 2, 2, 6, 6]
    assert cells.step_ns(3, 6) is cells.step_ns(2, 6)
    assert cells.measured_rows(4) == 4


def test_loads_both_forms(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps(CELLS))
    (tmp_path / "object.json").write_text(json.dumps({"cells": CELLS}))
    assert CostCells.load(tmp_path / "list.json") == CostCells.load(tmp_path / "object.json")


BAD_CELLS = {
    "no JSON": ("{", "Expecting"),
    "empty": ("[]", "expected a list of cells"),
    "no list": ('{"bs": 1}', "expected a list of cells"),
    "a number": ("[1]", "cell 0: expected an object"),
    "no T": ('[{"bs": 1, "M": 1}]', "cell 0: expected an object"),
    "bs 0": ('[{"bs": 0, "M": 1, "T": 0.1}]', "cell 0: bs: expected an int >= 1, got 0"),
    "M true": ('[{"bs": 1, "M": true, "T": 0.1}]', "cell 0: M: expected an int"),
    "M fraction": ('[{"bs": 1, "M": 1.5, "T": 0.1}]', "cell 0: M: expected an int"),
    "T 0": ('[{"bs": 1, "M": 1, "T": 0}]', "cell 0: T: expected seconds"),
    "T NaN": ('[{"bs": 1, "M": 1, "T": NaN}]', "cell 0: T: expected seconds"),
    "T in ms": ('[{"bs": 1, "M": 1, "T": 35.4}]', "cell 0: T: expected seconds"),
    "T huge": (
        '[{"bs": 1, "M": 1, "T": 1' + "0" * 400 + "}]",
        r"cell 0: T: .* got 1000\S+\.\.\.\S+000$",
    ),
    "bs huge": ('[{"bs": 1' + "0" * 400 + ', "M": 1, "T": 1}]', "cell 0: bs: expected an int >= 1"),
    "too many digits": ('[{"bs": 1' + "0" * 5000 + ', "M": 1, "T": 1}]', "Exceeds the limit"),
    "nested": ("[" * 100_000, "recursion"),
    "nested cell": ("[" * 900 + "]" * 900, "cell 0: expected an object"),
    "T text": ('[{"bs": 1, "M": 1, "T": "1"}]', "cell 0: T: expected seconds"),
}


@pytest.mark.parametrize("text, message", BAD_CELLS.values(), ids=BAD_CELLS)
def test_refuses_bad_cells(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cells.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{path}: .*{message}"):
        CostCells.load(path)


def test_damaged_files_are_value_errors(tmp_path: Path) -> None:
    path = tmp_path / "cells.json"
    path.write_text(json.dumps(CELLS))
    assert check_damaged(CostCells.load, path, 200) > 100


def test_a_changed_copy_has_rows_of_its_own() -> None:
    cells = CostCells.from_list([{"bs": 1, "M": 1, "T": 0.001}])
    assert cells.step_ns(1, 2).tolist() == [1_000_000] * 3
    assert replace(cells, samples=(Cell(1, 1, 0.5),)).step_ns(1, 2).tolist() == [500_000_000] * 3


def test_the_longest_time_fits_int32() -> None:
    longest = (2**31 - 1) * 1e-9
    assert CostCells.from_list([{"bs": 1, "M": 1, "T": longest}]).step_ns(1, 1).tolist() == [2**31 - 1] * 2
