"""The CUDA sources on a CPU: builds them on csrc/emulation with g++ at the first call, into a user cache.

A test tool, not a back end for users: it runs the kernels of csrc/cuda one thread at a time. The library registers its
operators in `torch.ops.dspark_cuda_host` through the same bindings as on a device, so no layout is written down twice.
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

NAMESPACE = "dspark_cuda_host"

# What a build checks beyond values: nothing; races and unwritten shared memory; addresses and undefined behaviour.
CHECKS = {
    "": [],
    "races": ["-fsanitize=thread"],
    "address": ["-fsanitize=address,undefined", "-fsanitize-sections=cuda_shared", "-fno-sanitize-recover=all", "-g"],
}

_library: ctypes.CDLL | None = None


def available() -> tuple[bool, str]:
    """Whether the emulation can be built here."""
    return _emulation.available("CUDA")


def kernel(stem: str) -> Callable[..., None]:
    """The operator before the library is loaded."""
    return _emulation.kernel(NAMESPACE, stem, load)


def load() -> ctypes.CDLL:
    """Build the library if need be and load it, once."""
    global _library
    if _library is None:
        path = build(os.environ.get("DSPARK_CUDA_HOST_CHECK", ""))
        torch.ops.load_library(str(path))
        _library = ctypes.CDLL(str(path))
    return _library


@contextmanager
def schedule(seed: int | None = None, poison: int = 0xA5, shared_limit: int = 99 << 10) -> Iterator[None]:
    """Run threads in a random order with this seed, and fill shared memory with the byte `poison`, inside the block."""
    library = load()
    set_options = library.cuda_on_host_options
    set_options.argtypes = [ctypes.c_bool, ctypes.c_uint64, ctypes.c_int, ctypes.c_size_t]
    set_options(seed is not None, seed or 0, poison, shared_limit)
    try:
        yield
    finally:
        set_options(False, 0, 0xA5, 99 << 10)


def launches() -> int:
    """Kernels that have run so far; CUB's device sort, one step of the emulation, counts none."""
    count = load().cuda_on_host_launches
    count.restype = ctypes.c_uint64
    return int(count())


def compile_command(check: str = "") -> list[str]:
    """The compiler and the flags that every unit shares."""
    flags = ["-std=c++17", "-O1" if check else "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off"]
    flags += ["-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-unused-parameter"]
    if check == "address":
        flags += CHECKS[check]
    return [_emulation.COMPILER, *flags, *_emulation.include("emulation/cuda_on_host/include")]


def build(check: str = "") -> Path:
    """The library for these sources, compiler and torch; compiled unless it is in the cache."""
    if check not in CHECKS:
        raise ValueError(f"DSPARK_CUDA_HOST_CHECK: expected one of {', '.join(map(repr, CHECKS))}, got {check!r}")
    texts = (check, *_emulation.without_paths(compile_command(check)), Path(__file__).read_text())
    fingerprint = _emulation.fingerprint(("common", "cuda", "emulation/cuda_on_host"), *texts)
    return _emulation.library("cuda_host", fingerprint, lambda scratch, out: _link(check, scratch, out))


def _link(check: str, scratch: Path, out: Path) -> None:
    root, torch_lib = _emulation.sources(), Path(torch.__file__).parent / "lib"
    units = [*root.glob("cuda/*.cu"), *root.glob("cuda/*.cpp"), *root.glob("emulation/cuda_on_host/*.cpp")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda unit: compile_unit(unit, check, scratch), sorted(units)))
    link = [f"-L{torch_lib}", "-ltorch", "-ltorch_cpu", "-lc10"]
    _emulation.run([*compile_command(check), "-shared", *map(str, objects), *link, "-o", str(out)])


def compile_unit(unit: Path, check: str, scratch: Path) -> Path:
    """The object of one source, from the cache if it is there."""
    command = compile_command(check)
    if unit.name == "bindings.cpp":
        include = Path(torch.__file__).parent / "include"
        command += [f"-I{include}", "-DDSPARK_CUDA_HOST", "-DTORCH_TARGET_VERSION=0x020b000000000000"]
    if unit.suffix == ".cu":
        command += ["-x", "c++", *(CHECKS[check] if check == "races" else [])]
    return _emulation.compiled(command, unit, scratch)
