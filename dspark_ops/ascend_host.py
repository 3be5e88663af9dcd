"""The AscendC sources on a CPU: builds them on csrc/emulation with g++ at the first call, into a user cache.

A test tool, not a back end for users. It runs the very kernels of csrc/ascend, the launches of csrc/ascend/host and the
bindings, and refuses what the chip would not forgive (csrc/emulation/ascendc_on_host/README.md). It serves the
operators that csrc/ascend has.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch

from . import _emulation

NAMESPACE = "dspark_ascend_host"
STEMS = (
    "prefix_survival", "plan_budget", "schedule_verify_lens", "allocate_verify_lens",
    "ragged_layout", "pad_to_bucket", "compressor_layout", "state_rows", "state_blocks",
    "scatter_to_strided", "gather_from_strided", "max_safe_verify_len",
    "accept_greedy", "finalize_accept", "update_offset",
)  # fmt: skip
POISON = 0xFF
# As struct Counters of csrc/emulation/ascendc_on_host/include/ascendc_on_host/machine.h.
COUNTERS = (
    "vector_instructions", "vector_repeats", "gathers", "sorts", "scalar_reads", "scalar_writes", "scalar_gm_reads",
    "scalar_gm_writes", "loads", "load_bytes", "stores", "store_bytes", "flags", "barriers", "launches", "blocks",
)  # fmt: skip

_library: ctypes.CDLL | None = None


def available() -> tuple[bool, str]:
    """Whether the emulation can be built here."""
    return _emulation.available("AscendC")


def kernel(stem: str) -> Callable[..., None]:
    """The operator before the library is loaded."""
    return _emulation.kernel(NAMESPACE, stem, load)


def load() -> ctypes.CDLL:
    """Build the library if need be and load it, once."""
    global _library
    if _library is None:
        path = build()
        torch.ops.load_library(str(path))
        _library = ctypes.CDLL(str(path))
    return _library


@contextmanager
def options(blocks: int = 0, poison: int = POISON, whole_blocks: bool = False) -> Iterator[None]:
    """Launch so many blocks (0: as the host side asks), and fill a fresh unified buffer with the byte `poison`.

    With `whole_blocks` it is a fault that two of them write into the same 32 bytes of global memory.
    """

    def set_options(blocks: int, poison: int, whole_blocks: bool) -> None:
        load().ascendc_on_host_options(ctypes.c_uint32(blocks), ctypes.c_int(poison), ctypes.c_bool(whole_blocks))

    set_options(blocks, poison, whole_blocks)
    try:
        yield
    finally:
        set_options(0, POISON, False)


def counters() -> dict[str, int]:
    """What the launches since the last call did."""
    values = (ctypes.c_int64 * len(COUNTERS))()
    load().ascendc_on_host_counters(values)
    return dict(zip(COUNTERS, values, strict=True))


def compile_command() -> list[str]:
    """The compiler and the flags that every unit shares."""
    flags = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra"]
    return [_emulation.COMPILER, *flags, *_emulation.include("emulation/ascendc_on_host/include")]


def build() -> Path:
    """The library for these sources, compiler and torch; compiled unless it is in the cache."""
    texts = (*_emulation.without_paths(compile_command()), Path(__file__).read_text())
    fingerprint = _emulation.fingerprint(("common", "ascend", "emulation/ascendc_on_host"), *texts)
    return _emulation.library("ascend_host", fingerprint, _link)


def _link(scratch: Path, out: Path) -> None:
    root, torch_lib = _emulation.sources(), Path(torch.__file__).parent / "lib"
    units = [root / "ascend/host/launch.cpp", root / "ascend/host/bindings.cpp"]  # submit.cpp is torch_npu's
    units += [*root.glob("ascend/*.cpp"), *root.glob("emulation/ascendc_on_host/*.cpp")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda unit: _object(unit, scratch), sorted(units)))
    link = [f"-L{torch_lib}", "-ltorch", "-ltorch_cpu", "-lc10", "-pthread"]
    _emulation.run([*compile_command(), "-shared", *map(str, objects), *link, "-o", str(out)])


def _object(unit: Path, scratch: Path) -> Path:
    command = compile_command()
    if unit.name == "bindings.cpp":
        include = Path(torch.__file__).parent / "include"
        command += [f"-isystem{include}", "-DDSPARK_ASCEND_HOST", "-DTORCH_TARGET_VERSION=0x020b000000000000"]
    return _emulation.compiled(command, unit, scratch)
