"""Runs in the environment of `triton_ascend.py`: collects the launches of all operators and lowers each variant.

The real launchers run on CPU tensors with a driver that records where it would compile, so the variants are those of a
deployment (`aot_calls.py`). Each goes the way of Triton-Ascend's own compiler: Triton IR, `triton-adapter-opt` to
linalg, `bishengir-compile` to HIVM. Prints JSON as the last thing on stdout.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import aot_calls
import ascendnpuir
import torch
import triton
import triton.compiler
from triton._C.libtriton import ir
from triton.backends.ascend.compiler import make_ttir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime.jit import JITFunction
from triton_ascend import judge

CHIP = "Ascend910B1"
TARGET = GPUTarget("npu", CHIP, 0)
CORE = "compile-on-910-95=False"
PASSES = [
    f"--discrete-mask-access-conversion={CORE} force-simt-template=False", "--triton-to-annotation",
    f"--triton-to-unstructure={CORE} force-simt-template=False", "--triton-to-hivm", "--triton-to-hfusion",
    "--triton-to-llvm", "--bubble-up-operation",
    "--triton-to-linalg=global-kernel=false named-ops=True enable-nd2nz-on-vector=False enable-select-analysis=True "
    + CORE,
]  # fmt: skip
OPTIONS = [
    f"--target={CHIP}", "--enable-auto-multi-buffer=True", "--enable-hfusion-compile=true",
    "--enable-hivm-compile=true", "--enable-triton-kernel-compile=true",
]  # fmt: skip
CRASH = "crashes without a reason"
REASONS = (
    r'&& "([^"]+)"', r"(ub overflow, requires \d+ bits while \d+ bits available)",
    r"error: (?!Failed to run|External hivmc)([^\n]+)", r"Assertion `([^']+)' failed",
)  # fmt: skip


class Refused(Exception):
    """A variant that a stage does not take; the text says which and why."""


class Recorder:
    """Stands where Triton has its driver."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return TARGET


def record() -> list[tuple[Any, dict[str, Any]]]:
    """From now on, a launch appends the kernel's source and options here instead of compiling it."""
    recorded: list[tuple[Any, dict[str, Any]]] = []
    run = JITFunction.run

    def no_launch(self: Any, *args: Any, grid: Any = None, warmup: bool = False, **options: Any) -> Any:
        return run(self, *args, grid=grid, warmup=True, **options)

    triton.compiler.compile = lambda source, target, options: recorded.append((source, options))
    triton.runtime.driver.set_active(Recorder())
    JITFunction.run = no_launch
    return recorded


def named(source: Any) -> tuple[str, str]:
    """The kernel and its constants, as text."""
    module = source.fn.__module__.rpartition(".")[2]
    constants = (f"{k}={v}" for k, v in source.constants.items() if v is not None)
    return f"{module}.{source.fn.__name__}".replace(f"{module}._{module}_kernel", f"{module}"), " ".join(constants)


def collect(stems: list[str]) -> list[tuple[dict[str, Any], Any, dict[str, Any]]]:
    """Every variant once, with the operators that launch it."""
    recorded = record()
    found: dict[Any, tuple[dict[str, Any], Any, dict[str, Any]]] = {}
    for stem in stems:
        launch = aot_calls.launcher(stem)
        for label, args, *keywords in aot_calls.calls(stem):
            recorded.clear()
            launch(*args, **dict(*keywords))
            for source, options in recorded:
                name, constants = named(source)
                facts = {"kernel": name, "constants": constants, "call": label, "operators": []}
                key = (name, constants, str(source.signature))
                operators = found.setdefault(key, (facts, source, options))[0]["operators"]
                operators += [] if stem in operators else [stem]
    return list(found.values())


def tool(stage: str, folder: Path, makes: str, program: Path, *arguments: str) -> Path:
    """Run a tool; the file it makes, or Refused with the reason.

    Only the file counts: the compiler always fails, for want of its last step. A crash without a word is given a second
    chance, since one was seen to be an accident.
    """
    why = CRASH
    for _ in range(2):
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
        made = next(folder.rglob(makes), None)
        if made is not None:
            return made
        why = reason(done.stderr)
        if why != CRASH:
            break
    raise Refused(f"{stage}: {why}")


def reason(text: str) -> str:
    """The gist of an error text, without paths."""
    for pattern in REASONS:
        found = re.search(pattern, text)
        if found:
            return found[1]
    return CRASH


def triton_ir(source: Any, options: dict[str, Any]) -> str:
    backend = make_backend(TARGET)
    parsed, context = backend.parse_options(options), ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    try:
        module = source.make_ir(parsed, backend.get_codegen_implementation(), backend.get_module_map(), context)
    except Exception as error:  # what a front end raises is of many classes; the innermost says what it lacks
        raise Refused("Triton 3.2: " + innermost(error)) from error
    return str(make_ttir(module, {"hash": "none"}, parsed))


def innermost(error: BaseException) -> str:
    """The text of the first error of a chain: Triton quotes it, and the source, in each of those around it."""
    _, chained, text = str(error).rpartition("Error(")
    if not chained:
        return text.strip().splitlines()[-1]
    text = text.replace("\\", "")
    return text[1:].partition(text[0] + ")")[0]


def lower(source: Any, options: dict[str, Any], folder: Path) -> str:
    """The HIVM module of a variant; Refused, with stage and reason, if there is none."""
    source_file = folder / "k.ttir"
    source_file.write_text(triton_ir(source, options))
    adapter = Path(triton.__file__).parent / "backends/ascend/triton-adapter-opt"
    linalg = tool("adapter", folder, "k.mlir", adapter, str(source_file), *PASSES, "-o", str(folder / "k.mlir"))
    # The compiler on its own refuses this attribute of the function.
    linalg.write_text(re.sub(r", mix_mode[^}]*", "", linalg.read_text(), count=1))
    compiler = Path(ascendnpuir.__file__).parent / "bin/bishengir-compile"
    outputs = (f"--save-temps={folder}", "-o", str(folder / "k.o"))
    return tool("compiler", folder, "module.hivm.opt.mlir", compiler, str(linalg), *OPTIONS, *outputs).read_text()


def main(stems: list[str]) -> None:
    variants = []
    for facts, source, options in collect(stems or aot_calls.stems()):
        with tempfile.TemporaryDirectory() as folder:
            try:
                counts = judge(lower(source, options, Path(folder)))
                outcome = "scalar loop" if counts["scalar_loops"] else "vectorised"
                variants.append({**facts, "outcome": outcome, **counts})
            except Refused as refused:
                variants.append({**facts, "outcome": "refused", "reason": str(refused)})
    versions = {"triton-ascend": triton.__version__, "torch": torch.__version__, "python": platform.python_version()}
    print("\n" + json.dumps({"target": CHIP, "versions": versions, "variants": variants}))


if __name__ == "__main__":
    main(sys.argv[1:])
