"""Whether a native library was built from the sources beside it. Only a checkout has them: only there can they differ.

The linker writes a hash of the sources into the library, as its build id: nothing is compiled again for it. Times of
files would not do: a checkout, a branch or a copy renews them without a change. setup.py runs this file by its path,
so it must import nothing of the package.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

FOLDERS = {"_C": ("common", "cpu"), "_cuda": ("common", "cuda")}
_SUFFIXES = {".h", ".cpp", ".cuh", ".cu"}
_NOTES = 4096  # the build id stands right behind the headers of an ELF file


def build_id(root: Path, name: str) -> list[str]:
    """The linker's option for library `name`; none where libraries are not ELF files."""
    return [f"-Wl,--build-id=0x{_fingerprint(root, name).hex()}"] if sys.platform == "linux" else []


def is_stale(library: Path) -> bool:
    """Whether the sources of this checkout are not those of the library. Never so where there are no sources."""
    root, name = library.parent.parent, library.name.partition(".")[0]
    if sys.platform != "linux" or name not in FOLDERS:
        return False
    if not all((root / part).exists() for part in ("setup.py", *(f"csrc/{folder}" for folder in FOLDERS[name]))):
        return False
    with library.open("rb") as file:
        return _fingerprint(root, name) not in file.read(_NOTES)


def _fingerprint(root: Path, name: str) -> bytes:
    """20 bytes for the text that library `name` is built from, and for setup.py, which has the flags."""
    hashed = hashlib.sha256((root / "setup.py").read_bytes())
    for folder in FOLDERS[name]:
        for path in sorted(p for p in (root / "csrc" / folder).iterdir() if p.suffix in _SUFFIXES):
            hashed.update(b"\0%s\0" % path.name.encode() + path.read_bytes())
    return hashed.digest()[:20]
