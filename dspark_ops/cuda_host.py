"""The CUDA sources on a CPU: builds them on csrc/emulation with g++ at the first call, into a user cache, and loads them.

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

# What a build checks beyond the values: nothing, races and unwritten shared memory, or addresses and undefined behaviour.
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


def compile_command(check: str = "") -> list[str]:
    """The compiler and the flags that every unit shares."""
    root = sources()
    flags = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra"]
    flags += ["-Wno-unknown-pragmas", "-Wno-unused-parameter"]
    if check == "address":
        flags += CHECKS[check]
    return [COMPILER, *flags, f"-I{root}", f"-I{root / 'emulation/cuda_on_host/include'}"]


def build(check: str = "") -> Path:
    """The library for these sources, compiler and torch; compiled unless it is in the cache."""
    if check not in CHECKS:
        raise ValueError(f"DSPARK_CUDA_HOST_CHECK: expected one of {', '.join(map(repr, CHECKS))}, got {check!r}")
    root = sources()
    units = sorted([*root.glob("cuda/*.cu"), *root.glob("cuda/*.cpp"), *root.glob("emulation/cuda_on_host/*.cpp")])
    folder = _cache() / _fingerprint(root, check)
    library = folder / "cuda_host.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                os.replace(_compile(units, check, Path(scratch)), library)
    return library


def _compile(units: list[Path], check: str, scratch: Path) -> Path:
    torch_root = Path(torch.__file__).parent
    bindings = [f"-I{torch_root / 'include'}", "-DDSPARK_CUDA_HOST", "-DTORCH_TARGET_VERSION=0x020b000000000000"]

    def one(unit: Path) -> str:
        out = str(scratch / f"{unit.name}.o")
        device = ["-x", "c++", *(CHECKS[check] if check == "races" else [])] if unit.suffix == ".cu" else []
        extra = bindings if unit.name == "bindings.cpp" else []
        _run([*compile_command(check), *extra, *device, "-c", str(unit), "-o", out])
        return out

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(one, units))
    library = scratch / "cuda_host.so"
    link = [f"-L{torch_root / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10"]
    _run([*compile_command(check), "-shared", *objects, *link, "-o", str(library)])
    return library


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"cuda_host: {' '.join(command)}\n{done.stderr[-4000:]}")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dspark_ops"


def _fingerprint(root: Path, check: str) -> str:
    """A hash of everything that the library depends on."""
    version = subprocess.run([COMPILER, "--version"], capture_output=True, text=True).stdout
    digest = hashlib.sha256(f"{version}\n{torch.__version__}\n{check}\n{compile_command(check)[1:-2]}".encode())
    for folder in ("common", "cuda", "emulation/cuda_on_host"):
        for path in sorted(p for p in (root / folder).rglob("*") if p.is_file()):
            digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return f"cuda_host-{digest.hexdigest()[:16]}"
