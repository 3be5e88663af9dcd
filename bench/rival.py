"""The rival: SGLang 0.5.23's own DSpark functions, run from its wheel without installing it.

The wheel comes once, by `pip download --no-deps`, into a cache folder; only the few files named in `REAL` are executed.
Everything else that they import from `sglang` is a stand-in that raises when used. Set DSPARK_RIVAL_WHEEL to a wheel
to take that one instead.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import types
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace

VERSION = "0.5.23"
OPS, SRT = "sglang.kernels.ops.speculative", "sglang.srt.speculative"
REAL = {
    f"{OPS}.dspark.dispatch",
    f"{OPS}.dspark.dspark_accept",
    f"{OPS}.dspark.dspark_schedule",
    f"{OPS}.dspark.dspark_verify_window",
    f"{OPS}.ragged_verify_kernels",
    f"{SRT}.dspark_components.dspark_planner",
    f"{SRT}.dspark_components.dspark_sps",
    f"{SRT}.dspark_components.dspark_sts",
    f"{SRT}.ragged_verify",
    "sglang.srt.environ",
    "sglang.srt.utils.invariants",
}
# The stand-in names that are read, not only named, while the files are imported.
VALUES = {
    "sglang.srt.utils": {"is_npu": lambda: False, "ceil_align": lambda x, y: (x + y - 1) // y * y},
    "sglang.srt.layers.dp_attention": {"is_dp_attention_enabled": lambda: False},
    "sglang.srt.managers.overlap_utils": {"CONFIDENCE_RELAY_RING_LAG": 2},
}


class Unavailable(RuntimeError):
    """The rival cannot be had here; the text says why."""


class _Absent:
    """Stands for a name of a module that is not executed: may be named and annotated with, not used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise RuntimeError(f"{self._name} is a stand-in and was called")

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (object,)

    def __or__(self, other: object) -> _Absent:
        return self

    __ror__ = __or__


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != "sglang":
            return None
        if name in REAL:
            return importlib.util.spec_from_file_location(name, self.root / f"{name.replace('.', '/')}.py")
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = _StandIn(spec.name)
        module.__dict__.update(VALUES.get(spec.name, {}))
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


def _cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dspark_ops" / f"sglang-{VERSION}"


def _wheel() -> Path:
    given = os.environ.get("DSPARK_RIVAL_WHEEL")
    if given:
        if not Path(given).is_file():
            raise Unavailable(f"DSPARK_RIVAL_WHEEL={given} is not a file")
        return Path(given)
    found = sorted(_cache_dir().glob("*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(_cache_dir())]
        done = subprocess.run([*command, f"sglang=={VERSION}"], capture_output=True, text=True)
        found = sorted(_cache_dir().glob("*.whl"))
        if not found:
            raise Unavailable(f"sglang=={VERSION} could not be downloaded: {done.stderr.strip().splitlines()[-1:]}")
    return found[0]


@cache
def load() -> SimpleNamespace:
    """The rival's functions by name. Raises Unavailable where the wheel cannot be had."""
    if importlib.util.find_spec("triton") is None:
        raise Unavailable("triton is not installed, and the rival's files import it")
    root = _cache_dir() / "files"
    with zipfile.ZipFile(_wheel()) as wheel:
        for name in REAL:
            wheel.extract(f"{name.replace('.', '/')}.py", root)
    sys.meta_path.insert(0, _Finder(root))
    sys.modules.setdefault("requests", types.ModuleType("requests"))
    modules = [importlib.import_module(name) for name in sorted(REAL)]
    return SimpleNamespace(**{k: v for m in modules for k, v in vars(m).items() if not k.startswith("_")})
