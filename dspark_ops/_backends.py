"""Which back ends exist, whether each can run here and why not, and `use_backend` to force one."""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from . import _sources, ascend_host, cuda_host


def _load_native(folder: Path = Path(__file__).parent, name: str = "_C") -> tuple[bool, str]:
    """Load a compiled library once; it registers its kernels with the dispatcher."""
    found = sorted(folder.glob(f"{name}*.so"))
    if not found:
        return False, "the native library is not built (no compiler, or an error: `pip install -v` says which)"
    if len(found) > 1:
        return False, f"more than one native library, so one is stale: {', '.join(p.name for p in found)}; build again"
    try:
        torch.ops.load_library(str(found[0]))
    except OSError as error:
        return False, f"the native library does not load: {error}"
    if not _sources.is_stale(found[0]):
        return True, f"loaded {found[0].name}"
    stale = f"{found[0].name} was built from other sources than these: run `python setup.py build_ext --inplace`"
    warnings.warn(f"dspark_ops: {stale}", RuntimeWarning, stacklevel=2)
    return True, f"loaded, but {stale}"


def _load_ascend() -> tuple[bool, str]:
    """Load the Ascend library after torch_npu, in whose terms it is written. torch_npu is not imported without it."""
    if not any(Path(__file__).parent.glob("_ascend*.so")):
        return False, "not built: needs CANN (ASCEND_HOME_PATH) and torch_npu where dspark_ops is built"
    try:
        importlib.import_module("torch_npu")
    except (ImportError, OSError) as error:
        return False, f"torch_npu does not load: {error}"
    return _load_native(name="_ascend")


_native = _load_native()
_native_cuda = _load_native(name="_cuda")
_native_ascend = _load_ascend()


@dataclass(frozen=True)
class Backend:
    """A provider of operators. `namespace` is where its operators live in torch.ops; `device` None means any device.

    `stems` None means every operator; a forced back end that has only some refuses the others.
    """

    name: str
    device: str | None
    namespace: str
    available: Callable[[], tuple[bool, str]]
    for_tests: bool = False  # runs a device's kernels on a CPU, slowly; never chosen unasked
    stems: tuple[str, ...] | None = None

    def serves(self, stem: str) -> bool:
        """Whether it has this operator."""
        return self.stems is None or stem in self.stems

    def operator(self, stem: str) -> Any:
        """The operator of this name; NotServed if there is none."""
        if not self.serves(stem):
            raise NotServed(f"{stem}: backend {self.name!r} does not have it, only {', '.join(self.stems or ())}")
        return getattr(getattr(torch.ops, self.namespace), stem).default


class NotServed(RuntimeError):
    """A back end that was asked for by name does not have the operator."""


def has_triton() -> bool:
    """Whether Triton is installed. It is not imported before it is used."""
    return importlib.util.find_spec("triton") is not None


def serves_cuda() -> bool:
    """Whether native code is registered for CUDA tensors, so that nothing else must be."""
    return _native_cuda[0]


def _cuda() -> tuple[bool, str]:
    if not serves_cuda() or torch.cuda.is_available():
        return _native_cuda
    return False, f"{_native_cuda[1]}, but torch sees no GPU"


def _triton() -> tuple[bool, str]:
    if not has_triton():
        return False, "triton is not installed (pip install 'dspark_ops[triton]')"
    return torch.cuda.is_available(), "for CUDA and ROCm" if torch.cuda.is_available() else "torch sees no GPU"


def _triton_interpret() -> tuple[bool, str]:
    if not has_triton():
        return _triton()
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return interpreted, "Triton's interpreter" if interpreted else "needs TRITON_INTERPRET=1 set before Python starts"


_BACKENDS = {
    b.name: b
    for b in (
        Backend("reference", None, "dspark_reference", lambda: (True, "plain torch, any device")),
        Backend("cpu", "cpu", "dspark", lambda: _native),
        Backend("triton", "cuda", "dspark_triton", _triton),
        Backend("cuda", "cuda", "dspark", _cuda),
        Backend("ascend", "npu", "dspark", lambda: _native_ascend, stems=ascend_host.STEMS),
        Backend("triton_interpret", "cpu", "dspark_triton", _triton_interpret, for_tests=True),
        Backend("cuda_host", "cpu", cuda_host.NAMESPACE, cuda_host.available, for_tests=True),
        Backend("ascend_host", "cpu", ascend_host.NAMESPACE, ascend_host.available, True, ascend_host.STEMS),
    )
}

_forced: Backend | None = None
# Read by every operator call: a plain global, so that the common case costs one load and torch.compile guards it.
forced_namespace: str | None = None


def backends() -> list[Backend]:
    """Every back end the package knows, whether or not it can run here."""
    return list(_BACKENDS.values())


def get_backend(name: str) -> Backend:
    """The back end `name`; ValueError if there is none of that name."""
    if name not in _BACKENDS:
        raise ValueError(f"backend: expected one of {', '.join(_BACKENDS)}, got {name!r}")
    return _BACKENDS[name]


def available_backends(device: str = "cpu") -> list[str]:
    """Names of the back ends that can serve tensors of this device type here."""
    return [b.name for b in _BACKENDS.values() if b.device in (None, device) and b.available()[0]]


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Force one back end for the calls inside (process-wide, not per thread).

    Raises ValueError for an unknown name, RuntimeError with the reason when the back end cannot run here; a call on
    tensors of a device that it does not serve raises RuntimeError too. Nothing ever falls back silently.
    """
    global _forced, forced_namespace
    backend = get_backend(name)
    ok, reason = backend.available()
    if not ok:
        raise RuntimeError(f"backend {name!r} is not available: {reason}")
    before = (_forced, forced_namespace)
    _forced, forced_namespace = backend, backend.namespace
    try:
        yield
    finally:
        _forced, forced_namespace = before


@contextmanager
def on_host() -> Iterator[None]:
    """For work that is the host's whatever serves the device: leaves a forced back end of another device aside."""
    global _forced, forced_namespace
    before = (_forced, forced_namespace)
    if _forced is not None and _forced.device not in (None, "cpu"):
        _forced = forced_namespace = None
    try:
        yield
    finally:
        _forced, forced_namespace = before


def check_device(stem: str, args: tuple[Any, ...]) -> None:
    """Refuse a call of an operator, or with tensors, that the forced back end does not serve."""
    if _forced is None:
        return
    _forced.operator(stem)
    if _forced.device is None:
        return
    for arg in args:
        if isinstance(arg, torch.Tensor) and arg.device.type != _forced.device:
            raise RuntimeError(
                f"{stem}: backend {_forced.name!r} serves {_forced.device} tensors, got one on {arg.device}"
            )
