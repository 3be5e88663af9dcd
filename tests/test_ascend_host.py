"""AscendC sources under emulation: sizes around every limit of the kernels, several blocks, any bytes in the buffer.

That each operator equals the reference on random cases is in test_operators.py, for this back end as for the others.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from random import Random

import pytest
import torch
from planning_sizes import KINDS, plan_arguments
from workshop import Workshop

from dspark_ops import ascend_host
from dspark_ops._backends import NotServed, get_backend
from dspark_ops._registry import stems
from dspark_ops.testing import case, compare
from dspark_ops.testing.generate import ints, poison
from dspark_ops.testing.planning import confidences, cost_row

BACKEND = "ascend_host"
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")

# (B, γ) at and past what one tile holds (448 requests, 32 drafts) and what stays resident (3584 keys); long rows.
SHAPES = [
    (64, 7), (65, 7), (448, 7), (449, 7), (512, 7), (513, 7), (3584, 1), (3585, 1), (64, 32), (3, 33), (40, 56),
    (5, 57), (700, 15), (2, 500),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["global", "first_drop", "history", "budget"])
@pytest.mark.parametrize("shape", SHAPES)
def test_plans_of_every_size(shape: tuple[int, int], mode: str) -> None:
    kind = KINDS[(SHAPES.index(shape) + len(mode)) % len(KINDS)]
    for stem, args in plan_arguments(*shape, kind, mode, low=1 + SHAPES.index(shape) % 2).items():
        compare(stem, args, BACKEND)


@pytest.mark.parametrize("kind", KINDS)
def test_ties_that_are_split(kind: str) -> None:
    for batch, gamma in ((17, 7), (200, 7), (1500, 7)):
        for seed in ("budget", "global"):
            args = plan_arguments(batch, gamma, kind, seed)
            compare("allocate_verify_lens", args["allocate_verify_lens"], BACKEND)
            compare("schedule_verify_lens", args["schedule_verify_lens"], BACKEND)


# A table of 3584 confidences or 1792 generations fits the buffer; 32 drafts are one tile, and 448 requests.
@pytest.mark.parametrize(
    ("batch", "gamma", "rows"),
    [(64, 7, 512), (64, 7, 513), (700, 7, 100), (200, 2, 1792), (200, 2, 1793), (89, 40, 89), (3, 33, 1)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rows_by_slot(batch: int, gamma: int, rows: int, dtype: torch.dtype) -> None:
    rng = Random(f"{batch}/{rows}/{dtype}")
    values = confidences(rng, rows, gamma, "broken").to(dtype)
    numbers = [0, 1, 2, -1, (1 << 32) + 1, -(1 << 63), (1 << 63) - 1, 1 << 32]
    generation, expected = (
        torch.tensor([rng.choice(numbers[:k]) for _ in range(n)]) for k, n in ((5, rows), (8, batch))
    )
    wide = torch.tensor([rng.choice([rng.randrange(rows), rng.randrange(rows), *numbers, rows]) for _ in range(batch)])
    for slots in (wide, wide.clamp(-(1 << 31), (1 << 31) - 1).int(), None):
        if slots is None and rows != batch:
            continue
        for freshness in ((False, None, None, None), (True, None, None, None), (True, None, generation, expected)):
            outputs = poison([batch, gamma], torch.float32), poison([batch, gamma], torch.float32)
            compare("prefix_survival", (values, False, *(None,) * 3, slots, None, *freshness, *outputs), BACKEND)
        logits = values.float().nan_to_num(0.5).clamp(0.01, 0.99).logit().to(dtype)
        survival, calibrated = poison([batch, gamma], torch.float32), poison([batch, gamma], torch.float32)
        args = (logits, True, *(None,) * 3, slots, None, True, None, generation, expected, survival, calibrated)
        compare("prefix_survival", args, BACKEND)


@pytest.mark.parametrize(("batch", "rows"), [(300, 500), (700, 100), (700, 900)])
def test_plan_from_rows_by_slot(batch: int, rows: int) -> None:
    """History and current confidences by slot, with keys that fit the buffer and with more."""
    rng = Random(batch)
    history, current = (confidences(rng, rows, 7, "uniform") for _ in range(2))
    slots, generation = ints(rng, batch, 0, rows - 1), ints(rng, rows, 1, 2, torch.int64)
    cost, rules = (cost_row(rng, 8 * batch), 1000, None), (None, 1, 0, 1e-6)
    outputs = [poison([n], torch.int32) for n in (batch, batch + 1)]
    outputs += [poison([batch, 7], torch.float32), poison([5], torch.int64)]
    of_history = (history, slots, None, generation, torch.ones(batch, dtype=torch.int64))
    args = (current, False, None, None, None, slots, *of_history, -1, None, *cost, *rules, 0, -1, 0, None, False)
    compare("allocate_verify_lens", (*args, *outputs, None), BACKEND)


def test_every_ratio_ties() -> None:
    """s = 1 and T proportional to M leave every budget to the exact comparison; the smallest must win."""
    for batch in (9, 600):
        step_ns = torch.arange(batch * 8 + 1, dtype=torch.int32) * 1000
        for search in (0, 1):
            compare(
                "plan_budget",
                (
                    torch.ones(batch, 7), step_ns, 0, None, None, 1, 0, 1e-6, search, -1, 0, None, False,
                    poison([5], torch.int64), None,
                ),
                BACKEND,
            )  # fmt: skip


@pytest.mark.parametrize("search", [0, 1])
def test_close_ratios(search: int) -> None:
    """Ratios that float32 cannot tell apart: T follows tau to within a few ns, so the exact comparison decides."""
    for seed in range(30):
        rng = Random(seed)
        survival = confidences(rng, 40, 5, "near").cumprod(1)
        best_first = survival.flatten().double().sort(descending=True).values
        tau = 40 + torch.cat([torch.zeros(1, dtype=torch.double), best_first.cumsum(0)])
        step_ns = torch.full((241,), 1, dtype=torch.int32)
        step_ns[40:] = (tau * 9_000_000 / rng.uniform(0.9, 1.1)).round().int() + ints(rng, 201, 0, 2)
        compare(
            "plan_budget",
            (
                survival, step_ns, 0, None, None, 1, 0, 1e-6, search, -1, 0, None, False, poison([5], torch.int64),
                None,
            ),
            BACKEND,
        )  # fmt: skip


def test_sigmoid() -> None:
    """Within one unit in the last place of the correctly rounded value, tails, infinities and NaN included."""
    x = torch.cat([torch.linspace(-75, 40, 60_000), torch.linspace(-2, 2, 20_000)])
    x = torch.cat([x, torch.tensor([0.0, -0.0, 1e30, -1e30, float("inf"), -float("inf"), float("nan")])])[:, None]
    survival, c = torch.empty_like(x), torch.empty_like(x)
    torch.ops.dspark_ascend_host.prefix_survival.default(
        x, True, None, None, None, None, None, False, None, None, None, survival, c
    )
    want = torch.sigmoid(x.double()).float().nan_to_num(0.0)
    want = torch.where(want < 2.0**-100, 0.0, want)
    apart = (c.view(torch.int32).long() - want.view(torch.int32).long()).abs()
    assert int(apart.max()) <= 1, x[apart.argmax()]


@pytest.mark.parametrize("blocks", [1, 2, 7, 40])
def test_any_number_of_blocks(blocks: int) -> None:
    rng = Random(blocks)
    for batch, gamma in ((1, 5), (130, 7), (500, 3), (70, 40)):
        args = (
            confidences(rng, batch, gamma, "uniform"), False, *(None,) * 5, False, None, None, None,
            poison([batch, gamma], torch.float32), poison([batch, gamma], torch.float32),
        )  # fmt: skip
        with ascend_host.options(blocks=blocks):
            compare("prefix_survival", args, BACKEND)
    with ascend_host.options(blocks=blocks):
        for stem in ascend_host.STEMS:
            for seed in range(20 if blocks < 40 else 3):
                compare(stem, case(stem, 500 + seed), BACKEND)


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0xA5])
def test_what_the_buffer_held_before_does_not_matter(byte: int) -> None:
    with ascend_host.options(poison=byte):
        for stem in ascend_host.STEMS:
            for seed in range(40):
                compare(stem, case(stem, 700 + seed), BACKEND)
        for args in plan_arguments(513, 7, "ties", "history").items():
            compare(*args, BACKEND)


def test_every_operator_is_served() -> None:
    assert set(ascend_host.STEMS) == set(stems())


def test_stem_that_is_not_served() -> None:
    partial = replace(get_backend(BACKEND), stems=("plan_budget",))
    with pytest.raises(NotServed, match=r"pad_to_bucket: .* does not have it, only plan_budget"):
        partial.operator("pad_to_bucket")


HERE, EQUAL = "tests/test_ascend_host.py", "tests/test_operators.py::test_equals_reference"
# name: (file of csrc/ascend, the text, its replacement, the test that must notice, what it must say)
MUTANTS = {
    "no flag after the rows are loaded": (
        "survival.h", "    sync<HardEvent::MTE2_V>();\n  }\n\n  template <class T>\n  __aicore__ inline void fetch_e",
        "  }\n\n  template <class T>\n  __aicore__ inline void fetch_e", EQUAL, "V reads what pipe MTE2 wrote",
    ),
    "no flag before the rows go out": (
        "survival.h", "    gather(rows, x, offsets, 0, n);\n    sync<HardEvent::V_MTE3>();",
        "    gather(rows, x, offsets, 0, n);", f"{HERE}::test_any_number_of_blocks", "MTE3 reads what pipe V wrote",
    ),
    "an index is written while vectors use its place": (
        "device.h", "  sync<HardEvent::V_S>();\n  AscendC::CreateVecIndex", "  AscendC::CreateVecIndex", EQUAL,
        "CreateVecIndex on pipe S overwrites what pipe V",
    ),
    "a row past the table is read": (
        "survival.h", "row < source_.confidence.rows", "row <= source_.confidence.rows", EQUAL, "outside every tensor",
    ),
    "no barrier between vector instructions": (
        "device.h", "{ AscendC::PipeBarrier<PIPE_V>(); }", "{}", EQUAL, "V reads what pipe V wrote",
    ),
    "lanes after the last request count": (
        "candidates.h", "if (requests == lanes) return;", "return;", EQUAL, "Mismatch",
    ),
    "equals that did not fit are forgotten": (
        "windows.h", "if (left > count) count_ties();", "if (left > count) below_ = pairs().GetValue(2 * (count - 1));",
        f"{HERE}::test_ties_that_are_split", "Mismatch",
    ),
    "a limb is shifted too little": ("windows.h", "GetValue(i)) << 19", "GetValue(i)) << 18", EQUAL, "Mismatch"),
    "floats decide the best ratio": (
        "search.h", "kNearBest = 1.0f - 1.0f / (1 << 18)", "kNearBest = 1.0f", f"{HERE}::test_close_ratios", "Mismatch",
    ),
    "floats decide the first drop": (
        "search.h", "if (drops(w, budget)) return", "return", f"{HERE}::test_close_ratios", "Mismatch",
    ),
    "half of a generation is compared": (
        "row_table.h", "byte <= 4; byte += 4", "byte <= 0; byte += 4", f"{HERE}::test_rows_by_slot", "Mismatch",
    ),
    "a slot past 2^32 wraps": (
        "row_table.h", "      require_equal(kIsRead, lane<int32_t>(kWord), zero, tile.lanes);\n", "",
        f"{HERE}::test_rows_by_slot", "Mismatch",
    ),
    "one tie too many": (
        "assign.h", "return {value, k, left};", "return {value, k, left + 1};", EQUAL, "Mismatch",
    ),
    "half of the base is forgotten": ("search.h", "int32_t(base_ - base_ / 2)", "0", EQUAL, "Mismatch"),
    "the exponential is a little off": ("sigmoid.h", "4.16666667e-2f", "4.2e-2f", f"{HERE}::test_sigmoid", "assert"),
    "no correction after the division": (
        "sigmoid.h", "  add(s.c, s.c, s.d, n);\n", "", f"{HERE}::test_sigmoid", "assert",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    shop = Workshop(tmp_path_factory.mktemp("ascend_mutants"))
    shop.own_cache()
    return shop


QUICK = "one tie too many"


@pytest.mark.parametrize("mutant", [m if m == QUICK else pytest.param(m, marks=pytest.mark.full) for m in MUTANTS])
def test_mutant_is_caught(mutant: str, shop: Workshop) -> None:
    file, old, new, test, message = MUTANTS[mutant]
    tests = ("-k", "ascend_host", test) if test == EQUAL else (test,)
    shop.catches((f"csrc/ascend/{file}", old, new, message), tests)
