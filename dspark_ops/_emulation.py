"""What the emulations share: where the sources lie, and a library that is built once, into a user cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

COMPILER = "g++"
SUFFIXES = (".h", ".cuh", ".cu", ".cpp")


def available(language: str) -> tuple[bool, str]:
    """Whether sources in this language can be built and emulated here."""
    found = shutil.which(COMPILER) is not None
    return found, f"{language} sources emulated on a CPU, for tests" if found else f"{COMPILER} is not installed"


def kernel(namespace: str, stem: str, load: Callable[[], Any]) -> Callable[..., None]:
    """The operator before the library is loaded: loads it, which registers the compiled one, and calls that."""

    def first_call(*args: Any) -> None:
        load()
        getattr(getattr(torch.ops, namespace), stem).default(*args)

    return first_call


def include(folder: str) -> list[str]:
    """The flags to find csrc and this folder in it, and to name csrc the same wherever it lies (`__FILE__`)."""
    root = sources()
    return [f"-I{root}", f"-I{root / folder}", f"-fmacro-prefix-map={root}=csrc"]


def sources() -> Path:
    """csrc: inside an installed package, beside the package in a checkout."""
    package = Path(__file__).parent
    inside = package / "csrc"
    return inside if inside.is_dir() else package.parent / "csrc"


def library(name: str, fingerprint: str, link: Callable[[Path, Path], None]) -> Path:
    """`name`.so of these sources, from the cache; `link(scratch, out)` builds it if it is not there."""
    folder = cache() / f"{name}-{fingerprint}"
    found = folder / f"{name}.so"
    if found.exists():
        return found
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                out = Path(scratch) / found.name
                link(Path(scratch), out)
                os.replace(out, found)
    return found


def compiled(command: list[str], unit: Path, scratch: Path) -> Path:
    """The compiled unit, from the cache if the compiler has seen the same text with the same flags before."""
    text = run([*command, "-E", "-P", str(unit)])
    found = cache() / "objects" / f"{digest(version(), *without_paths(command), text)}.o"
    if not found.exists():
        found.parent.mkdir(parents=True, exist_ok=True)
        out = scratch / f"{unit.name}.o"
        run([*command, "-c", str(unit), "-o", str(out)])
        os.replace(out, found)
    return found


def fingerprint(folders: tuple[str, ...], *texts: str) -> str:
    """A hash of the sources in these folders of csrc, of the compiler and torch, and of `texts`."""
    root = sources()
    everything = [version(), torch.__version__, Path(__file__).read_text(), *texts]
    for folder in folders:
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in SUFFIXES):
            everything += [str(path.relative_to(root)), path.read_text()]
    return digest(*everything)


def run(command: list[str]) -> str:
    """Standard output of a compiler, or RuntimeError with what it complained of."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"emulation: {' '.join(command)}\n{done.stderr[-4000:]}")
    return done.stdout


def version() -> str:
    """The compiler's own words."""
    return run([COMPILER, "--version"])


def without_paths(command: list[str]) -> list[str]:
    """Where a source lies does not change its object."""
    return [word for word in command if not word.startswith(("-I", "-isystem", "-fmacro-prefix-map"))]


def digest(*texts: str) -> str:
    """A short hash."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:24]


def cache() -> Path:
    """Where libraries and objects are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dspark_ops"
