"""The CUDA sources on a CPU: builds them on csrc/emulation with g++ at the first call, into a user cache.

A test tool, not a back end for users: it runs the kernels of csrc/cuda one thread at a time. The library registers its
operators in `torch.ops.dspark_cuda_host` through the same bindings as on a device, so no layout is written down twice.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

NAMESPACE = "dspark_cuda_host"
COMPILER = "g++"
SUFFIXES = (".h", ".cuh", ".cu", ".cpp")

# What a build checks beyond values: nothing; races and unwritten shared memory; addresses and undefined behaviour.
CHECKS = {
    "": [],
    "races": ["-fsanitize=thread"],
    "address": ["-fsanitize=address,undefined", "-fsanitize-sections=cuda_shared", "-fno-sanitize-recover=all", "-g"],
}

_library: ctypes.CDLL | None = None


def available() -> tuple[bool, str]:
    """Whether the emulation can be built here."""
    found = shutil.which(COMPILER)
    return found is not None, "CUDA sources emulated on a CPU, for tests" if found else f"{COMPILER} is not installed"


def kernel(stem: str) -> Callable[..., None]:
    """The operator before the library is loaded: loads it, which registers the compiled one, and calls that."""

    def first_call(*args: Any) -> None:
        load()
        getattr(getattr(torch.ops, NAMESPACE), stem).default(*args)

    return first_call


def sources() -> Path:
    """csrc: inside an installed package, beside the package in a checkout."""
    package = Path(__file__).parent
    inside = package / "csrc"
    return inside if inside.is_dir() else package.parent / "csrc"


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
    root = sources()
    flags = ["-std=c++17", "-O1" if check else "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off"]
    flags += ["-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-unused-parameter"]
    if check == "address":
        flags += CHECKS[check]
    return [COMPILER, *flags, f"-I{root}", f"-I{root / 'emulation/cuda_on_host/include'}"]


def build(check: str = "") -> Path:
    """The library for these sources, compiler and torch; compiled unless it is in the cache."""
    if check not in CHECKS:
        raise ValueError(f"DSPARK_CUDA_HOST_CHECK: expected one of {', '.join(map(repr, CHECKS))}, got {check!r}")
    folder = _cache() / _fingerprint(check)
    library = folder / "cuda_host.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                os.replace(_link(check, Path(scratch)), library)
    return library


def _link(check: str, scratch: Path) -> Path:
    root, torch_lib = sources(), Path(torch.__file__).parent / "lib"
    units = [*root.glob("cuda/*.cu"), *root.glob("cuda/*.cpp"), *root.glob("emulation/cuda_on_host/*.cpp")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda unit: _object(unit, check, scratch), sorted(units)))
    library = scratch / "cuda_host.so"
    link = [f"-L{torch_lib}", "-ltorch", "-ltorch_cpu", "-lc10"]
    _run([*compile_command(check), "-shared", *map(str, objects), *link, "-o", str(library)])
    return library


def _object(unit: Path, check: str, scratch: Path) -> Path:
    """The compiled unit, from the cache if the compiler has seen the same text with the same flags before."""
    command = compile_command(check)
    if unit.name == "bindings.cpp":
        include = Path(torch.__file__).parent / "include"
        command += [f"-I{include}", "-DDSPARK_CUDA_HOST", "-DTORCH_TARGET_VERSION=0x020b000000000000"]
    if unit.suffix == ".cu":
        command += ["-x", "c++", *(CHECKS[check] if check == "races" else [])]
    text = _run([*command, "-E", "-P", str(unit)])
    found = _cache() / "objects" / f"{_hash(_version(), *_without_paths(command), text)}.o"
    if not found.exists():
        found.parent.mkdir(parents=True, exist_ok=True)
        out = scratch / f"{unit.name}.o"
        _run([*command, "-c", str(unit), "-o", str(out)])
        os.replace(out, found)
    return found


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"cuda_host: {' '.join(command)}\n{done.stderr[-4000:]}")
    return done.stdout


def _version() -> str:
    return _run([COMPILER, "--version"])


def _without_paths(command: list[str]) -> list[str]:
    """Where a source lies does not change its object."""
    return [word for word in command if not word.startswith("-I")]


def _hash(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:24]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dspark_ops"


def _fingerprint(check: str) -> str:
    """A hash of everything that the library depends on."""
    root = sources()
    texts = [_version(), torch.__version__, check, *_without_paths(compile_command(check)), Path(__file__).read_text()]
    for folder in ("common", "cuda", "emulation/cuda_on_host"):
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in SUFFIXES):
            texts += [str(path.relative_to(root)), path.read_text()]
    return f"cuda_host-{_hash(*texts)}"
