"""Each check of the AscendC emulation, by a kernel that has the error and its twin that has not (ascend_faults.cpp)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dspark_ops import ascend_host
from dspark_ops._emulation import sources

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")

# What the emulation must say.
FAULTS = {
    "unaligned_operand": "not aligned to 32 bytes",
    "buffer_over_capacity": "of 196608 are left",
    "operands_overlap": "overlap in part",
    "past_the_tensor": "elements up to 65 of a tensor of 64",
    "vector_int64": "no such type",
    "vector_float64": "no such type",
    "divide_int32": "no such type",
    "duplicate_int64": "no such type",
    "cast_that_does_not_exist": "no such conversion",
    "cast_without_rounding": "needs a rounding mode",
    "compare_count": "not a multiple of 256 bytes",
    "compare_int32_order": "equality only",
    "select_int32": "no such type",
    "select_mode": "needs VSEL_TENSOR_SCALAR_MODE",
    "select_reserve": "last 8 KiB",
    "gather_unaligned_offset": "not a multiple of the element",
    "gather_past_the_end": "past the end of the source",
    "gather_int64": "2 or 4 bytes only",
    "reduce_without_room": "elements up to 16 of a tensor of 8",
    "maximum_without_room": "elements up to 32 of a tensor of 16",
    "index_over_what_vector_reads": "CreateVecIndex on pipe S overwrites what pipe V still reads",
    "sort_too_many": "1 to 255 fit",
    "sort_a_nan": "NaN has no place",
    "merge_too_long": "1 to 4095 fit",
    "merge_unsorted": "not in descending order",
    "merge_with_a_gap": "names no two, three or four lists",
    "merge_repeats_of_two": "repeats need four lists",
    "merge_in_place": "overlapping operands",
    "copy_of_a_part_of_a_block": "not whole blocks of 32 bytes",
    "copy_too_many_blocks": "1 to 4095 fit",
    "copy_to_unaligned": "not aligned to 32 bytes",
    "padding_too_wide": "padding over 32 bytes",
    "read_past_the_global_tensor": "outside the global tensor",
    "read_past_the_allocation": "outside every tensor of the launch",
    "write_past_the_allocation": "outside every tensor of the launch",
    "get_value_past_the_allocation": "outside every tensor of the launch",
    "no_flag_load_to_vector": "V reads what pipe MTE2 wrote",
    "wrong_flag_load_to_vector": "V reads what pipe MTE2 wrote",
    "flag_before_the_load": "V reads what pipe MTE2 wrote",
    "no_flag_vector_to_store": "MTE3 reads what pipe V wrote",
    "no_barrier_between_vectors": "V reads what pipe V wrote",
    "no_flag_vector_to_scalar": "S reads what pipe V wrote",
    "no_flag_load_to_scalar": "S reads what pipe MTE2 wrote",
    "no_flag_scalar_to_vector": "V reads what pipe S wrote",
    "no_flag_scalar_to_store": "MTE3 reads what pipe S wrote",
    "load_over_what_is_read": "overwrites what pipe V still reads",
    "vector_over_what_is_stored": "overwrites what pipe MTE3 still reads",
    "load_what_is_being_stored": "another pipe of this core wrote",
    "flag_never_waited_for": "never waited for",
    "flag_never_set": "never set",
    "flag_set_twice": "is set already",
    "fetched_event_kept": "is set already",
    "event_out_of_range": "event 8",
    "queue_pipeline": "not freed",
    "queue_exhausted": "buffers are in use",
    "queue_too_deep": "1 deep and full",
    "queue_empty": "queue is empty",
    "tensor_leaked": "1 tensors of a queue were not freed",
    "tensor_freed_twice": "not a tensor that this queue gave out",
    "tensor_used_after_free": "freed or handed on",
    "tensor_used_after_enqueue": "freed or handed on",
    "bound_queue_waits_for_no_vector": "V reads what pipe MTE2 wrote",
    "bound_queue_of_a_computed_tensor": "MTE3 reads what pipe V wrote",
    "scalar_write_never_cleaned": "never cleaned out of the scalar cache",
    "copy_of_an_unclean_line": "has not cleaned its cache",
    "other_core_reads_unclean": "has not cleaned its cache",
    "stale_line": "cached line is stale",
    "two_cores_one_line": "same cache line dirty",
    "race_between_blocks": "block 0 wrote, with no SyncAll",
    "two_cores_write_one_block": "part of a 32-byte block that block 0 writes too",
    "write_over_what_another_reads": "block 0 reads, with no SyncAll",
    "block_misses_the_meeting": "not reached by every block",
    "more_blocks_than_cores": "41 blocks on 40 cores",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ascend_faults") / "ascend_faults"
    machine = sources() / "emulation/ascendc_on_host"
    units = [HERE / "ascend_faults.cpp", machine / "machine.cpp", machine / "global_memory.cpp"]
    command = [*ascend_host.compile_command(), "-O1", *map(str, units), "-pthread", "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return out


def run(program: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *args], capture_output=True, text=True, timeout=60)


def test_every_fault_is_listed(program: Path) -> None:
    assert run(program).stdout.split() == list(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught(fault: str, program: Path) -> None:
    wrong, fine = run(program, fault, "0"), run(program, fault, "1")
    assert wrong.returncode == 1 and FAULTS[fault] in wrong.stdout, wrong.stdout + wrong.stderr
    assert fine.returncode == 0, fine.stdout + fine.stderr
