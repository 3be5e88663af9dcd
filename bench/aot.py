"""Compiles the Triton kernels for GPUs that need not be here; refuses spills, local memory and contracted products.

The real launchers run, on CPU tensors, with a driver that compiles where it would launch: so the variants are those
that a deployment would meet, nothing lists them a second time, and the launches of a call are counted on the way.

    python bench/aot.py                      all operators, all targets; writes results/triton_aot.json
    python bench/aot.py --stem plan_budget --target sm_90
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aot_calls
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from dspark_ops._files import write_atomic

HERE = Path(__file__).parent
TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32), "sm_90": GPUTarget("cuda", 90, 32), "sm_100": GPUTarget("cuda", 100, 32),
    "sm_120": GPUTarget("cuda", 120, 32), "gfx942": GPUTarget("hip", "gfx942", 64),
}  # fmt: skip
SHARED_LIMIT = 99 * 1024  # of one block on sm_120, the least of these targets but gfx942 (64 KiB)
# Multiply-adds count only where the source has float32 products and sums: integer division is made of them on AMD GPUs.
PRODUCTS_AND_SUMS = (re.compile(r"\bfmul\b[a-z ]* float\b"), re.compile(r"\bf(?:add|sub)\b[a-z ]* float\b"))
CONTRACTED = {"ptx": r"\b(?:fma|mad)\.\w*\.?f32", "amdgcn": r"\bv_(?:pk_)?(?:fma|fmac|mad|mac)\w*_f32"}


@dataclass
class Variant:
    """One compiled kernel and what it costs."""

    kernel: str
    constants: str
    target: str
    warps: int
    registers: int
    spills: int  # bytes of local (private) memory a thread, whatever they are for
    shared: int
    contracted: int  # float32 multiply-adds in the assembly

    @property
    def faults(self) -> list[str]:
        limit = 64 * 1024 if self.target.startswith("gfx") else SHARED_LIMIT
        faults = [f"{self.spills} bytes of local memory"] if self.spills else []
        faults += [f"{self.contracted} float32 multiply-adds"] if self.contracted else []
        return faults + ([f"{self.shared} bytes of shared memory"] if self.shared > limit else [])


class CompileOnly:
    """Stands where Triton has its driver, for a GPU of this kind."""

    def __init__(self, name: str) -> None:
        self.index, self.target = list(TARGETS).index(name), TARGETS[name]

    def get_current_device(self) -> int:
        return self.index

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return self.target


@contextmanager
def compiling(name: str) -> Iterator[list[Any]]:
    """Launches compile for the target and are collected instead of run."""
    launched: list[Any] = []
    run = JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        launched.append(run(self, *args, grid=grid, warmup=True, **kwargs))
        return launched[-1]

    triton.runtime.driver.set_active(CompileOnly(name))
    JITFunction.run = compile_only
    try:
        yield launched
    finally:
        JITFunction.run = run


def cuobjdump() -> str:
    """The one that comes with Triton, or the toolkit's."""
    bundled = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    found = str(bundled) if bundled.exists() else shutil.which("cuobjdump")
    if not found:
        raise RuntimeError("cuobjdump: expected it in Triton's package or on PATH, found none")
    return found


def nvidia_usage(cubin: bytes) -> tuple[int, int]:
    """Registers, and bytes of stack and local memory per thread."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [cuobjdump(), "--dump-resource-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    usage = {name: int(value) for name, value in re.findall(r"(\w+):(\d+)", text)}
    return usage["REG"], usage["STACK"] + usage["LOCAL"]


def amd_usage(assembly: str) -> tuple[int, int]:
    """Vector registers, and bytes of private memory per thread (4 for each vector register spilt elsewhere)."""
    fields = {name: int(value) for name, value in re.findall(r"\.(\w+):\s+(\d+)\s*$", assembly, re.MULTILINE)}
    return fields["vgpr_count"], fields["private_segment_fixed_size"] + 4 * fields["vgpr_spill_count"]


def constants(kernel: Any) -> str:
    """The constexprs that are not absent arguments, as text."""
    names = kernel.src.fn.arg_names
    values = ((names[at[0]], v) for at, v in kernel.src.constants.items())
    return " ".join(f"{name}={value}" for name, value in values if value is not None)


def measure(kernel: Any, target: str) -> Variant:
    name = kernel.src.fn.__module__.rpartition(".")[2] + "." + kernel.src.fn.__name__
    assembly = "amdgcn" if target.startswith("gfx") else "ptx"
    text = kernel.asm[assembly]
    registers, spills = amd_usage(text) if assembly == "amdgcn" else nvidia_usage(kernel.asm["cubin"])
    tempting = all(operation.search(kernel.asm["llir"]) for operation in PRODUCTS_AND_SUMS)
    return Variant(
        name, constants(kernel), target, kernel.metadata.num_warps, registers, spills, kernel.metadata.shared,
        len(re.findall(CONTRACTED[assembly], text)) if tempting else 0,
    )  # fmt: skip


def compile_stem(stem: str, target: str) -> tuple[list[Variant], dict[str, int]]:
    """The variants of an operator's calls, each once, and the launches of each call."""
    launch = aot_calls.launcher(stem)
    variants: dict[str, Variant] = {}
    launches = {}
    for label, args, *keywords in aot_calls.calls(stem):
        with compiling(target) as launched:
            launch(*args, **dict(*keywords))
        launches[label] = len(launched)
        for kernel in launched:
            if kernel.hash not in variants:
                variants[kernel.hash] = measure(kernel, target)
    return list(variants.values()), launches


def table(variants: list[Variant]) -> str:
    head = f"{'kernel':<46}{'target':>8}{'warps':>6}{'regs':>6}{'local':>7}{'shared':>8}{'fma':>5}  constants"
    lines = [
        f"{v.kernel:<46}{v.target:>8}{v.warps:>6}{v.registers:>6}{v.spills:>7}{v.shared:>8}{v.contracted:>5}"
        f"  {v.constants}"
        for v in variants
    ]
    return "\n".join([head, *lines])


def verdict(variants: list[Variant]) -> int:
    """Names what is wrong; the exit status."""
    faulty = [v for v in variants if v.faults]
    for v in faulty:
        print(f"FAULT {v.kernel} {v.target} {v.constants}: {', '.join(v.faults)}")
    print(f"{len(variants)} variants, {len(faulty)} with faults")
    return 1 if faulty else 0


def report(launches: dict[str, dict[str, int]], variants: list[Variant]) -> None:
    path = HERE / "results" / "triton_aot.json"
    path.parent.mkdir(exist_ok=True)
    versions = {"triton": triton.__version__, "torch": torch.__version__, "python": platform.python_version()}
    head = json.dumps({"versions": versions, "launches": launches}, indent=1).removesuffix("\n}")
    lines = ",\n  ".join(json.dumps(asdict(v)) for v in variants)  # one a line
    write_atomic(path, f'{head},\n "variants": [\n  {lines}\n ]\n}}\n')
    print(f"written to {path.relative_to(HERE.parent)}")


def main(argv: list[str] | None = None) -> int:
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise SystemExit("TRITON_INTERPRET must not be set: the interpreter compiles nothing")
    ported = aot_calls.stems()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stem", action="append", choices=ported, help="operators; default all")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="default all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes; default one for each CPU")
    options = parser.parse_args(argv)

    work = list(itertools.product(options.stem or ported, options.target or TARGETS))
    with ProcessPoolExecutor(min(options.jobs, len(work))) as pool:
        done = list(pool.map(compile_stem, *zip(*work, strict=True)))
    variants = [variant for found, _ in done for variant in found]
    launches = {stem: counts for (stem, _), (_, counts) in zip(work, done, strict=True)}
    print(table(variants))
    for stem, counts in launches.items():
        print(f"{stem}: " + "; ".join(f"{label}: {n} launches" for label, n in counts.items()))
    if not (options.stem or options.target):
        report(launches, variants)
    return verdict(variants)


if __name__ == "__main__":
    sys.exit(main())
