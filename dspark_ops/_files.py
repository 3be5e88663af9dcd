"""Files that are replaced as a whole: a reader, or a crash, never sees half of one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomic(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Write text or bytes to `path` through a temporary file next to it; on failure the old file stays as it was."""
    target = Path(path)
    # A name of its own: two threads, or two machines with one file system, may write the same file.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
