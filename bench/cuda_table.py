"""Prints the tables of docs/cuda.md: what the kernels of each operator take, and the least time they can take.

    python bench/cuda_table.py

Registers and shared memory are ptxas's, from bench/results/cuda_resources.json (csrc/cuda/build.py). The floor is an
estimate, nothing in it was measured: LAUNCH_US for each launch, and every byte that must be read or written once at
BYTES_PER_US (out of memory: an L2 cache may be faster). It leaves out what a kernel does in between: no forecast.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import device_cases

RESOURCES = Path(__file__).parent / "results/cuda_resources.json"
BATCH, GAMMA = 64, 7
LAUNCH_US = 2.5  # assumed
BYTES_PER_US = 4.8e6  # 4.8 TB/s, what the H200's maker states for its memory


@dataclass(frozen=True)
class Line:
    """An operator as it is launched at BATCH and GAMMA."""

    case: str  # in device_cases
    kernel: str
    rival: str  # SGLang's launches for the same results
    shared: str = ""  # in the resource table
    launches: int = 1


SORT = "RadixSort<256, 2> >"
PLAN, ROWS = "plan of up to 512 keys, 256 threads", "rows by request"
LINES = (
    Line("prefix_survival", "prefix_survival_kernel", "1 (`torch.cumprod`)"),
    Line("plan_budget", f"plan_budget_block<{SORT}", "on the host, after a copy and a wait", PLAN),
    Line("schedule_verify_lens", "schedule_block<128, 512>", "3", "schedule of up to 512 keys"),
    Line("allocate_verify_lens", f"allocate_block<{SORT}", "5, a copy to the host and a wait", PLAN),
    Line("ragged_layout", "ragged_layout_at_once", "9 to 11", ROWS),
    Line("pad_to_bucket", "pad_to_bucket_kernel", "1, without used lengths", "block sum"),
    Line("compressor_layout", "compressor_at_once", "-", ROWS),
    Line("state_rows", "state_rows_kernel", "-"),
    Line("state_blocks", "state_blocks_kernel<int>", "-"),
    Line("max_safe_verify_len", "max_safe_kernel", "-"),
    Line("scatter_hidden", "scatter_kernel", "4 to 5"),
    Line("gather_hidden", "gather_kernel", "indexing in torch"),
    Line("accept_greedy", "accept_greedy_kernel", "6 or more"),
    Line("finalize_accept", "finalize_accept_kernel", "3 to 5"),
    Line("update_offset", "update_offset_kernel", "-"),
)
# The one-block plans: most keys, the sort as the kernel's name has it, its shared memory, what it is.
PLANS = (
    (128, "CountingSort<128> >", "plan of up to 128 keys, 128 threads", "counts larger keys: 2 barriers"),
    (512, SORT, PLAN, "CUB block radix sort, 2 keys a thread, about 77 barriers"),
    (2048, "RadixSort<512, 4> >", "plan of up to 2048 keys, 512 threads", "4 a thread"),
    (6144, "RadixSort<512, 12> >", "plan of up to 6144 keys, 512 threads", "12 a thread"),
    (16384, "RadixSort<512, 32> >", "plan of up to 16384 keys, 512 threads", "32 a thread"),
)


def moved(case: str) -> int:
    """Bytes of a call's tensors, every row in use; of tables of all tokens, pages or costs only what it needs."""
    args = device_cases.make(case, BATCH, GAMMA, 0)
    tables: tuple[int, ...] = ()
    entries = 0
    if case == "state_rows":  # a request's token, and the token's place, for each row written
        tables, entries = (4, 5), (4 + 8) * args[-1].numel()
    elif case == "schedule_verify_lens":  # the cost of the rows it ends with
        tables, entries = (3,), 4
    elif case == "compressor_layout":  # a page number for each slot written
        tables, entries = (6, 10), 4 * (args[19].numel() + args[23].numel())
    return device_cases.bytes_of(tuple(a for i, a in enumerate(args) if i not in tables)) + entries


def floor_us(line: Line) -> float:
    """The estimate of the module's docstring."""
    return line.launches * LAUNCH_US + moved(line.case) / BYTES_PER_US


def planning_table(resources: dict[str, Any]) -> str:
    """The one-block planning kernels by size."""
    rows = ["| keys B·γ | block | registers: allocate, plan | shared memory | sort |", "|---|---|---|---|---|"]
    for keys, sort, shared, what in PLANS:
        registers = ", ".join(str(_registers(resources, f"{op}_block<{sort}")) for op in ("allocate", "plan_budget"))
        threads = shared.split()[-2]
        rows.append(f"| up to {keys} | {threads} threads | {registers} | {_kilobytes(resources, shared)} | {what} |")
    registers = ", ".join(str(_registers(resources, f"{op}_large")) for op in ("allocate", "plan_budget"))
    shared = _kilobytes(resources, "large plan")
    rows.append(f"| more, B·N up to 2^18 | 512 threads | {registers} | {shared} | device radix sort in global memory |")
    return "\n".join(rows)


def operator_table(resources: dict[str, Any]) -> str:
    """Every operator at BATCH and GAMMA."""
    rows = [
        "| operator | launches | registers | shared memory | bytes to move | floor, estimated | SGLang's launches |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in LINES:
        stem = device_cases.stem_of(line.case)
        name = f"`{stem}`" + (", bf16, D = 4096" if line.case.endswith("_hidden") else "")
        cells = (
            name, str(line.launches), str(_registers(resources, line.kernel)), _kilobytes(resources, line.shared),
            _bytes(moved(line.case)), f"{floor_us(line):.1f} µs", line.rival,
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _registers(resources: dict[str, Any], kernel: str) -> int:
    """Most of the four targets."""
    return max(row["registers"] for row in resources["kernels"] if row["kernel"] == kernel)


def _kilobytes(resources: dict[str, Any], shared: str) -> str:
    return f"{resources['dynamic_shared_bytes'][shared] / 1024:.1f} KiB" if shared else "-"


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{count / 1e3:.1f} KB"


def tables() -> tuple[str, str]:
    """Both tables, in Markdown."""
    resources = json.loads(RESOURCES.read_text())
    return planning_table(resources), operator_table(resources)


if __name__ == "__main__":
    print("\n\n".join(tables()))
