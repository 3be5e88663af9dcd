"""The AscendC sources on a CPU: builds them on csrc/emulation with g++ at the first call, into a user cache.

A test tool, not a back end for users. It runs the very kernels of csrc/ascend, the launches of csrc/ascend/host and the
bindings, and refuses what the chip would not forgive (csrc/emulation/ascendc_on_host/README.md). It serves the
operators that csrc/ascend has.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from . import cuda_host as shared

NAMESPACE = "dspark_ascend_host"
STEMS = ("prefix_survival", "plan_budget", "schedule_verify_lens", "allocate_verify_lens")
POISON = 0xFF
# As struct Counters of csrc/emulation/ascendc_on_host/include/ascendc_on_host/machine.h.
COUNTERS = (
    "vector_instructions", "vector_repeats", "gathers", "sorts", "scalar_reads", "scalar_writes", "scalar_gm_reads",
    "scalar_gm_writes", "loads", "load_bytes", "stores", "store_bytes", "flags", "barriers", "launches", "blocks",
)  # fmt: skip

_library: ctypes.CDLL | None = None


def available() -> tuple[bool, str]:
    """Whether the emulation can be built here."""
    ok, reason = shared.available()
    return ok, reason.replace("CUDA", "AscendC")


def kernel(stem: str) -> Callable[..., None]:
    """The operator before the library is loaded: loads it, which registers the compiled one, and calls that."""

    def first_call(*args: Any) -> None:
        load()
        getattr(getattr(torch.ops, NAMESPACE), stem).default(*args)

    return first_call


def load() -> ctypes.CDLL:
    """Build the library if need be and load it, once."""
    global _library
    if _library is None:
        path = build()
        torch.ops.load_library(str(path))
        _library = ctypes.CDLL(str(path))
    return _library


@contextmanager
def options(blocks: int = 0, poison: int = POISON) -> Iterator[None]:
    """Launch so many blocks (0: as the host side asks), and fill a fresh unified buffer with the byte `poison`."""
    library = load()
    library.ascendc_on_host_options(ctypes.c_uint32(blocks), ctypes.c_int(poison))
    try:
        yield
    finally:
        library.ascendc_on_host_options(ctypes.c_uint32(0), ctypes.c_int(POISON))


def counters() -> dict[str, int]:
    """What the launches since the last call did."""
    values = (ctypes.c_int64 * len(COUNTERS))()
    load().ascendc_on_host_counters(values)
    return dict(zip(COUNTERS, values, strict=True))


def compile_command() -> list[str]:
    """The compiler and the flags that every unit shares."""
    root = shared.sources()
    flags = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra"]
    return [shared.COMPILER, *flags, f"-I{root}", f"-I{root / 'emulation/ascendc_on_host/include'}"]


def build() -> Path:
    """The library for these sources, compiler and torch; compiled unless it is in the cache."""
    folder = shared._cache() / _fingerprint()
    library = folder / "ascend_host.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                os.replace(_link(Path(scratch)), library)
    return library


def _link(scratch: Path) -> Path:
    root, torch_lib = shared.sources(), Path(torch.__file__).parent / "lib"
    units = [root / "ascend/host/launch.cpp", root / "ascend/host/bindings.cpp"]  # submit.cpp is torch_npu's
    units += [*root.glob("ascend/*.cpp"), *root.glob("emulation/ascendc_on_host/*.cpp")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda unit: _object(unit, scratch), sorted(units)))
    library = scratch / "ascend_host.so"
    link = [f"-L{torch_lib}", "-ltorch", "-ltorch_cpu", "-lc10", "-pthread"]
    shared._run([*compile_command(), "-shared", *map(str, objects), *link, "-o", str(library)])
    return library


def _object(unit: Path, scratch: Path) -> Path:
    """The compiled unit, from the cache if the compiler has seen the same text with the same flags before."""
    command = compile_command()
    if unit.name == "bindings.cpp":
        include = Path(torch.__file__).parent / "include"
        command += [f"-isystem{include}", "-DDSPARK_ASCEND_HOST", "-DTORCH_TARGET_VERSION=0x020b000000000000"]
    text = shared._run([*command, "-E", "-P", str(unit)])
    known = [word for word in command if not word.startswith(("-I", "-isystem"))]
    found = shared._cache() / "objects" / f"{shared._hash(shared._version(), *known, text)}.o"
    if not found.exists():
        found.parent.mkdir(parents=True, exist_ok=True)
        out = scratch / f"{unit.stem}.o"
        shared._run([*command, "-c", str(unit), "-o", str(out)])
        os.replace(out, found)
    return found


def _fingerprint() -> str:
    """A hash of everything that the library depends on."""
    root = shared.sources()
    texts = [shared._version(), torch.__version__, *shared._without_paths(compile_command())]
    texts.append(Path(__file__).read_text())
    for folder in ("common", "ascend", "emulation/ascendc_on_host"):
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in shared.SUFFIXES):
            texts += [str(path.relative_to(root)), path.read_text()]
    return f"ascend_host-{shared._hash(*texts)}"
