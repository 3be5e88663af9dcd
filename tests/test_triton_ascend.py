"""The Triton-Ascend lowering: its committed table, how it reads a module, what it says where it cannot run.

The lowering itself takes a minute and two large wheels: `python bench/triton_ascend.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dspark_ops import _registry

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))
import triton_ascend

MODULE = """
func.func private @vadd_1d_float(memref<?xf32>)
func.func @kernel(%arg0: memref<?xf32>) {
  call @load_gm_to_ubuf_1d_float(%0, %1)
  call @vadd_1d_float(%1)
  scf.for %i = %c0 to %c64 step %c1 {
    %2 = memref.load %1[%i]
    scf.if %3 {
      memref.store %2, %4[%i]
    } {hivm.unlikely_condition}
  } {ExtractedLoadOrStore}
  %5 = scf.for %j = %c0 to %c8 step %c1 iter_args(%6 = %7) -> (f32) {
    scf.for %k = %c0 to %c64 step %c1 {
      func.call @vcmp_eq_1d_float(%1)
    }
    %8 = memref.load %1[%c0]
    func.call @vadd_1d_float(%1)
    scf.yield %8
  }
}
"""


def test_a_module_is_read_loop_by_loop() -> None:
    assert triton_ascend.judge(MODULE) == {"vector_calls": 3, "scalar_loops": 1, "row_loops": 1}


def test_the_document_has_the_table_of_the_results() -> None:
    results = json.loads(triton_ascend.RESULTS.read_text())
    table = triton_ascend.DOC.read_text().split(triton_ascend.BEGIN)[1].split(triton_ascend.END)[0]
    assert table == triton_ascend.table(results)
    assert {v["outcome"] for v in results["variants"]} <= set(triton_ascend.OUTCOMES)
    assert {stem for v in results["variants"] for stem in v["operators"]} == {*_registry.stems(), "verify_metadata"}


def test_a_table_counts_variants_by_outcome() -> None:
    common = {"kernel": "k", "operators": ["a", "b"]}
    fine = {**common, "outcome": "vectorised", "scalar_loops": 0, "vector_calls": 9}
    loops = [{**common, "outcome": "scalar loop", "scalar_loops": n, "vector_calls": 3} for n in (7, 2)]
    refused = {**common, "outcome": "refused", "reason": "compiler: too large"}
    row = triton_ascend.table({"variants": [fine, *loops, refused, refused]}).splitlines()[2]
    assert row == "| `a`, `b` | `k` | 1 | 2 | 2 | 2 to 7 scalar loops beside 3 vector calls; compiler: too large |"


def test_without_the_wheels_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SystemExit, match=r"Triton-Ascend cannot be had here: triton-ascend==3\.2\.0 "):
        triton_ascend.environment(tmp_path / "environment")
    assert not (tmp_path / "environment" / "ready").exists()
