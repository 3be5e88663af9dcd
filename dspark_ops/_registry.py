"""Defines the operators in the torch dispatcher: one schema, one fake, one name per operator, for every back end.

`torch.ops.dspark.<stem>` is the operator users and runtimes see. Its CompositeExplicitAutograd kernel is the
reference, so every device has an answer; a native library registers itself for its own device and overrides it.
Whichever back end runs, the operator checks its own arguments: `check` before a Python kernel and in the fake, the
binding in csrc/common before a native one.
A back end written in Python gets the same operators in a namespace of its own, `torch.ops.dspark_<name>.<stem>`,
which is what `use_backend(name)` calls: there, too, opcheck and torch.compile see a proper operator.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import torch

from . import _backends, _checks, ascend_host, cuda_host

Check = Callable[..., None]
_libraries: dict[str, torch.library.Library] = {}
_schemas: dict[str, tuple[str, Check]] = {}
_files: dict[str, str] = {}


def _define(namespace: str, stem: str, kernel: Callable[..., None], key: str = "CompositeExplicitAutograd") -> None:
    schema, check = _schemas[stem]
    if namespace not in _libraries:
        _libraries[namespace] = torch.library.Library(namespace, "FRAGMENT")
    library = _libraries[namespace]
    if key == "CompositeExplicitAutograd":
        library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        # Every output is an argument, so a fake has nothing to make: it makes sure that the shapes fit.
        torch.library.register_fake(f"{namespace}::{stem}", check, lib=library)

    @functools.wraps(kernel)
    def checked(*args: Any) -> None:
        check(*args)
        with torch.no_grad():  # a kernel in Python is made of differentiable operations; the operator is not one
            kernel(*args)

    library.impl(stem, checked, key)


def _lazy(package: str, file: str, stem: str) -> Callable[..., None]:
    """`dspark_ops.<package>.<file>.<stem>`, imported at the first call: a heavy import is for those who use it."""

    def kernel(*args: Any) -> None:
        launch = getattr(importlib.import_module(f"dspark_ops.{package}.{file}"), stem)
        first = next(a for a in args if isinstance(a, torch.Tensor))
        with torch.cuda.device_of(first):  # nothing for a CPU tensor
            launch(*args)

    return kernel


class Operator:
    """One operator: calls the back end that is forced by `use_backend`, or else the one the dispatcher picks.

    A native binding refuses bad arguments with a bare RuntimeError; `check` then says it in full, as ValueError or
    TypeError. Good arguments are so checked once, in C++, which is what a call of a few microseconds can afford.
    """

    def __init__(self, stem: str, check: Check) -> None:
        self.stem = stem
        self.check = check
        self._default = getattr(torch.ops.dspark, stem).default

    def __call__(self, *args: Any) -> None:
        namespace = _backends.forced_namespace
        if _checks.VALUE_CHECKS:
            self.check(*args)
        try:
            if namespace is None:
                self._default(*args)
            else:
                _backends.check_device(self.stem, args)
                getattr(getattr(torch.ops, namespace), self.stem).default(*args)
        except RuntimeError:
            self.check(*args)
            raise


def operator(schema: str, reference: Callable[..., None], check: Check) -> Operator:
    """Define the operator `schema` (all outputs are mutable arguments) with its reference and its shape check."""
    stem = schema[: schema.index("(")]
    _schemas[stem] = (schema, check)
    _define("dspark", stem, reference)
    _define("dspark_reference", stem, reference)
    _files[stem] = reference.__module__.rpartition(".")[2]
    if _backends.has_triton():
        kernel = _lazy("triton", file_of(stem), stem)
        _define("dspark_triton", stem, kernel)
        if not _backends.serves_cuda():
            _define("dspark", stem, kernel, key="CUDA")
    _define(cuda_host.NAMESPACE, stem, cuda_host.kernel(stem))
    if stem in ascend_host.STEMS:
        _define(ascend_host.NAMESPACE, stem, ascend_host.kernel(stem))
    return Operator(stem, check)


def file_of(stem: str) -> str:
    """The file stem in which each back end has this operator; a file may hold more than one."""
    return _files[stem]


def stems() -> list[str]:
    """Names of all operators, in the order of their definition."""
    return list(_schemas)
