"""The resource gate of the CUDA sources: nvcc compiles them, and a kernel that uses local memory is refused."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from workshop import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import cuda_table

needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")

_spec = importlib.util.spec_from_file_location("cuda_build", ROOT / "csrc/cuda/build.py")
assert _spec is not None and _spec.loader is not None
gate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(gate)

SPILLS = """
__global__ void local_memory(int* out, int n) {
  int values[64];
  for (int i = 0; i < 64; ++i) values[i] = out[i];
  for (int i = 0; i < 64; ++i) out[i] = values[(i * n) & 63];
}
"""


@needs_nvcc
def test_one_file_compiles_for_one_target(tmp_path: Path) -> None:
    rows = gate.compile_one(ROOT / "csrc/cuda/finalize_accept.cu", "sm_90", tmp_path)
    assert len(rows) == 1 and rows[0]["registers"] > 0 and rows[0]["spill_bytes"] == 0


@needs_nvcc
def test_local_memory_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "local_memory.cu"
    source.write_text(SPILLS)
    with pytest.raises(gate.Refused, match="local_memory"):
        gate.compile_one(source, "sm_90", tmp_path)


@needs_nvcc
@pytest.mark.parametrize(("flags", "fused"), [(gate.FLAGS, False), ([f for f in gate.FLAGS if "fmad" not in f], True)])
def test_offsets_are_learnt_without_fused_multiply_add(flags: list[str], fused: bool, tmp_path: Path) -> None:
    """The flag is what keeps the bits: without it the same source is fused."""
    ptx = tmp_path / "update_offset.ptx"
    source = ROOT / "csrc/cuda/update_offset.cu"
    subprocess.run(["nvcc", *flags, "-arch=sm_90", "-ptx", str(source), "-o", str(ptx)], check=True)
    assert ("fma.rn.f32" in ptx.read_text()) == fused


def test_table_names_every_source_for_every_target_and_no_spill() -> None:
    table = json.loads(cuda_table.RESOURCES.read_text())
    seen = {(row["file"], row["arch"]) for row in table["kernels"]}
    with_kernels = {s.name for s in gate.sources() if "__global__" in s.read_text()}
    assert {(name, arch) for name in with_kernels for arch in gate.ARCHS} <= seen
    assert all(row["spill_bytes"] == row["stack_bytes"] == 0 for row in table["kernels"])
    assert max(table["dynamic_shared_bytes"].values()) <= 99 << 10


@pytest.mark.full
def test_the_table_was_made_from_these_sources() -> None:
    table = json.loads(cuda_table.RESOURCES.read_text())
    assert table["sources"] == gate.source_hash(), (
        "make it again (minutes): python csrc/cuda/build.py --output bench/results/cuda_resources.json"
    )


def test_the_tables_of_the_document_are_those_of_the_resources() -> None:
    document = (ROOT / "docs/cuda.md").read_text(encoding="utf-8")
    for table in cuda_table.tables():
        assert table in document, "docs/cuda.md: paste what `python bench/cuda_table.py` prints"
