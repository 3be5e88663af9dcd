"""What `dspark-ops env` shows: versions, back ends, compilers, variables."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess

import torch

from . import __version__
from ._backends import backends

COMPILERS = ("g++", "nvcc", "bisheng")
# Variables of others that decide what runs here; the project's own start with DSPARK_ (ENVS.md).
OTHERS = ("ASCEND_HOME_PATH", "SOC_VERSION", "TRITON_INTERPRET", "XDG_CACHE_HOME")


def describe() -> dict[str, dict[str, str]]:
    """Sections of name -> text."""
    found = ((b.name, *b.available()) for b in backends())
    return {
        "versions": {
            "dspark_ops": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "platform": platform.platform(),
        },
        "back ends": {name: f"{'available' if ok else 'not available'}: {reason}" for name, ok, reason in found},
        "compilers": {name: _version(name) for name in COMPILERS},
        "variables": {n: v for n, v in sorted(os.environ.items()) if n.startswith("DSPARK_") or n in OTHERS},
    }


def _version(compiler: str) -> str:
    """The compiler's own first line that names a version, or why there is none."""
    path = shutil.which(compiler)
    if path is None:
        return "not found"
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"found, but does not run: {error}"
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return next((line for line in lines if "release" in line or "version" in line), lines[0] if lines else "no version")
