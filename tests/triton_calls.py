"""Runs in a process of its own, without the interpreter: what the Triton launchers compile, and how often.

python triton_calls.py variants     kernels compiled for steps whose numbers change
python triton_calls.py planted      a kernel that spills, and one whose products are contracted: does aot see it?
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]
import aot  # noqa: E402

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
    sys.exit(globals()[sys.argv[1]]())
