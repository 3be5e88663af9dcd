"""A scratch copy of the project that a test may build in another way, or break on purpose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from dspark_ops import _emulation

ROOT = Path(__file__).parent.parent
PARTS = ("bench", "csrc", "dspark_ops", "tests", "setup.py", "pyproject.toml", "README.md")
# A mistake: the file, a text that stands in it once, its replacement, and what a test must say.
Mutant = tuple[str, str, str, str]


class Workshop:
    """The copy: `build` it, `run` pytest in it, `replace` text in it."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        self.env = {**os.environ, "DSPARK_REQUIRE_NATIVE": "1", **env}
        self.run_env: dict[str, str] = {}
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
            else:
                shutil.copy(source, folder / part)

    def build(self) -> None:
        """Compile the native library in place; only what has changed is compiled again."""
        done = subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
            cwd=self.folder, env=self.env, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def own_cache(self) -> None:
        """Emulations built here stay here; objects of unchanged sources come from the user's cache."""
        objects = self.folder / "cache/dspark_ops/objects"
        objects.mkdir(parents=True)
        for known in (_emulation.cache() / "objects").glob("*.o"):
            (objects / known.name).symlink_to(known)
        self.run_env = {"XDG_CACHE_HOME": str(self.folder / "cache")}

    def run(self, *tests: str) -> subprocess.CompletedProcess[str]:
        """Run these tests of the copy, on its own package."""
        # No capture: what a sanitizer writes before it aborts would be lost in it.
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-s",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:faulthandler",
            *tests,
        ]
        return subprocess.run(command, cwd=self.folder, env=self.env | self.run_env, capture_output=True, text=True)

    def replace(self, file: str, old: str, new: str) -> str:
        """Replace the one place where `old` stands; returns the text before, to write back."""
        path = self.folder / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file}: {old!r} stands in {text.count(old)} places, expected one"
        path.write_text(text.replace(old, new))
        return text

    def restore(self, file: str, text: str) -> None:
        """Undo `replace`."""
        (self.folder / file).write_text(text)

    def catches(self, mutant: Mutant, tests: tuple[str, ...]) -> None:
        """Assert that these tests fail on the sources with this mistake, and say so."""
        file, old, new, message = mutant
        before = self.replace(file, old, new)
        try:
            done = self.run("-x", *tests)
        finally:
            self.restore(file, before)
        assert done.returncode == 1 and message in done.stdout, done.stdout[-3000:] + done.stderr[-1000:]
