"""Runs in a process of its own, without the interpreter: what the Triton launchers compile, and how often.

python triton_calls.py variants     kernels compiled for steps whose numbers change
python triton_calls.py numbers      what a number of the step could compile anew, in any kernel; nothing is compiled
python triton_calls.py warm         what is left to compile after a warmup; nothing is compiled
python triton_calls.py planted      a kernel that spills, and one whose products are contracted: does aot see it?
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]
import aot  # noqa: E402
import aot_calls  # noqa: E402

from dspark_ops import _backends  # noqa: E402
from dspark_ops.testing import case  # noqa: E402
from dspark_ops.triton import _move, _one_program, _warmup  # noqa: E402
from dspark_ops.triton.allocate_verify_lens import allocate_verify_lens  # noqa: E402


def step(batch: int, budget: int, base: int, max_rows: int, offset: int, tiers: int) -> None:
    """A step on views that start anywhere, with numbers as a runtime has them."""
    confidence = torch.rand(batch + offset, 7)[offset:]
    caps = torch.ones(batch + offset, dtype=torch.int32)[offset:]
    step_ns = torch.ones(batch * 8 + 1 + offset, dtype=torch.int32)
    outputs = (torch.empty(batch, dtype=torch.int32), torch.empty(batch + 1, dtype=torch.int32))
    allocate_verify_lens(
        confidence, False, None, None, None, None, None, None, None, None, None, budget, None, step_ns, base, None,
        caps, 1, 0, 1e-6, 0, max_rows, 0, torch.arange(1, tiers + 1, dtype=torch.int32), False, *outputs,
        torch.empty(batch, 7), torch.empty(5, dtype=torch.int64), None,
    )  # fmt: skip


def variants() -> None:
    with aot.compiling("sm_90") as launched:
        for batch, budget, base in ((5, 1, 0), (16, 16, 1), (7, 3, 1 << 40), (1, 0, -5), (9, 1 << 62, 16)):
            for offset in (0, 1, 4):
                step(batch, budget, base, [-1, 1, 16, 1 << 62][offset % 4], offset, 1 + offset)
    print("launches", len(launched), "kernels", len({kernel.hash for kernel in launched}))


# What the move of rows does with 16 bytes depends on these addresses, by intent.
ALIGNED = {f"{move}.{t}" for move in ("scatter_to_strided", "gather_from_strided") for t in _move.MOVED}


def doubts(info: Any, constants: dict[Any, Any]) -> Iterator[str]:
    """Parameters that Triton looks into, and constants that are neither flags nor powers of two (padded sizes)."""
    fn = info.jit_function
    module = fn.__module__.rpartition(".")[2]
    for i, p in enumerate(fn.params):
        name, value = f"{module}.{p.name}", constants.get((i,))
        if p.is_constexpr:
            if value & (value - 1):
                yield f"{name} = {value}"
        elif not p.do_not_specialize and name not in ALIGNED:
            yield f"{name} is looked into"


@triton.jit(do_not_specialize=["ints"])
def planted_numbers(ints, rows, N: tl.constexpr):
    tl.store(ints + tl.arange(0, 2), rows + N)


def warm() -> None:
    """After a warmup for 300 requests, its step at every batch size up to that."""
    keys = set()

    def look(*, fn: Any, compile: dict[str, Any], **rest: Any) -> bool:
        keys.add((fn.name, compile["key"]))
        return True

    triton.knobs.runtime.jit_cache_hook = look
    _backends.forced_namespace = "dspark_triton"  # whatever the device
    with aot.compiling("sm_90"):
        _warmup.warmup(300, 7, "cpu")
        warmed = len(keys)
        step = _warmup._default_step(7, torch.device("cpu"))
        for batch in range(1, 301):
            step(batch)
    print(f"warmed {warmed} and {len(keys) - warmed} more")


def numbers() -> None:
    """Random cases of every operator, on both paths of a plan, and the calls that are compiled ahead of time."""
    kernels, found = set(), set()

    def look(*, fn: Any, compile: dict[str, Any], **rest: Any) -> bool:
        kernels.add(fn.jit_function.__module__.rpartition(".")[2] + "." + fn.jit_function.__name__)
        found.update(doubts(fn, compile["constants"]))
        return True  # so that nothing is compiled

    triton.knobs.runtime.jit_cache_hook = look
    fits = _one_program.fits
    with aot.compiling("sm_90"):
        planted_numbers[(1,)](torch.zeros(2, dtype=torch.int32), 3, N=3)
        for stem in aot_calls.stems():
            launch = aot_calls.launcher(stem)
            for _, args, *keywords in aot_calls.calls(stem):
                launch(*args, **dict(*keywords))
            for seed in range(0 if stem == "verify_metadata" else 40):
                _one_program.fits = fits if seed % 2 else lambda plan: False
                launch(*case(stem, seed))
    print(*sorted(kernels))
    print(*sorted(found), sep="\n")


@triton.jit
def spilling(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.sort(tl.load(x + i)))


@triton.jit
def contracted(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, v * v + 1.5)


def planted() -> int:
    variants = []
    for target in ("sm_90", "gfx942"):
        with aot.compiling(target) as launched:
            spilling[(1,)](torch.zeros(16384, dtype=torch.int32), torch.zeros(16384, dtype=torch.int32), N=16384)
            contracted[(1,)](torch.zeros(128), torch.zeros(128), N=128)
            contracted[(1,)](torch.zeros(128), torch.zeros(128), N=128, enable_fp_fusion=False)
        variants += [aot.measure(kernel, target) for kernel in launched]
    return aot.verdict(variants)


if __name__ == "__main__":
    sys.exit(max(globals()[name]() or 0 for name in sys.argv[1:]))
