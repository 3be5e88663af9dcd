"""The adapter against SGLang's real functions, loaded from its wheel (bench/rival.py)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import golden_data
from dspark_ops.integrations import sglang as adapter

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))
import rival

CASES = 250  # of each of ten calls


@pytest.fixture(scope="module")
def theirs() -> SimpleNamespace:
    try:
        return rival.load()
    except rival.Unavailable as error:
        pytest.skip(f"SGLang's wheel cannot be had: {error}")


@pytest.fixture(autouse=True)
def off_again() -> Iterator[None]:
    yield
    adapter.disable()


def same(ours: Any, other: Any) -> None:
    """Equal values, shapes and dtypes, through tuples and structs."""
    if isinstance(ours, Tensor):
        assert ours.dtype == other.dtype
        assert torch.equal(ours, other), (ours, other)
    elif isinstance(ours, tuple):
        for a, b in zip(ours, other, strict=True):
            same(a, b)
    else:
        assert type(ours) is type(other)
        for name in ours.__struct_fields__:
            same(getattr(ours, name), getattr(other, name))


class Batch:
    """Random inputs of a step, as SGLang passes them."""

    def __init__(self, theirs: SimpleNamespace, seed: int, bs: int | None = None) -> None:
        random = torch.Generator().manual_seed(seed)

        def draw(low: int, high: int, *shape: int) -> Tensor:
            return torch.randint(low, high, shape, generator=random)

        self.bs, self.gamma = bs or int(draw(1, 40)), int(draw(1, 9))
        self.width = self.gamma + 1
        # Eighths: up to 8 factors are exact in float32, so that ties are ties for both.
        self.confidence = draw(0, 9, self.bs, self.gamma) / 8
        self.budget = int(draw(0, self.bs * self.gamma + 4))
        self.cfg = theirs.DSparkScheduleConfig(gamma=self.gamma)
        self.verify_lens = draw(1, self.width + 1, self.bs).int()
        wide = [torch.int32, torch.int64][seed % 2]  # SGLang passes both
        self.rows = int(self.verify_lens.sum()) + int(draw(0, 20))
        self.slots = self.bs + int(draw(0, 5))
        self.drafts = draw(0, 1000, self.bs, self.gamma)
        self.block_ids = draw(0, 1000, self.bs, self.gamma)
        kind = [torch.float32, torch.bfloat16, torch.int64][seed % 3]
        self.compact = (8 * torch.randn(self.rows + 3, 5, generator=random)).to(kind)
        self.correct = draw(0, self.width, self.bs).to(wide)
        self.bonus, self.prefix = draw(0, 1000, self.bs), draw(0, 10**6, self.bs).to(wide)

    def layout(self, theirs: SimpleNamespace) -> Any:
        return theirs.RaggedVerifyLayout.from_verify_lens_device(
            verify_lens=self.verify_lens, graph_num_tokens=self.rows
        )


CALLS: dict[str, Callable[[SimpleNamespace, Batch], Any]] = {
    "schedule": lambda s, b: s.ScheduleVerifyLensTopk.execute(confidence=b.confidence, budget=b.budget, cfg=b.cfg),
    "offsets": lambda s, b: s.BuildQoIndptr.execute(verify_lens=b.verify_lens),
    "padding": lambda s, b: s.PaddedToBucket.execute(
        verify_lens=b.verify_lens, graph_num_tokens=b.rows, bs=b.bs, padded_bs=b.slots
    ),
    "layout": lambda s, b: b.layout(s).padded_to_bucket(padded_bs=b.slots, cap=b.width).qo_indptr_device,
    "rows": lambda s, b: looked_up("compact_row_index")(
        verify_lens=b.verify_lens, padded_total=b.rows, device=torch.device("cpu")
    ),
    "ids": lambda s, b: looked_up("compact_verify_ids")(
        draft_block_ids=b.block_ids, draft_tokens=b.drafts, layout=b.layout(s), device="cpu"
    ),
    "scatter": lambda s, b: s.ScatterCompactToStrided.execute(
        compact=b.compact, layout=b.layout(s), fill_value=3.0, verify_num_draft_tokens=b.width
    ),
    "cap": lambda s, b: s.CapCorrectLen.execute(correct_len=b.correct, verify_lens=b.verify_lens),
    "finalize": lambda s, b: s.FinalizeAcceptLens.execute(
        correct_len=b.correct, cap_trim_lens=b.correct // 2, prefix_lens=b.prefix
    ),
    "out tokens": lambda s, b: s.BuildOutTokens.execute(
        draft_tokens=b.drafts, correct_len=b.correct, bonus=b.bonus, verify_num_draft_tokens=b.width, gamma=b.gamma
    ),
}


def looked_up(name: str) -> Callable[..., Any]:
    """A function as SGLang's own modules find it."""
    return getattr(sys.modules[f"{rival.OPS}.dspark.dspark_verify_window"], name)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_same_results_as_sglang(theirs: SimpleNamespace, call: Callable[..., Any]) -> None:
    for seed in range(CASES):
        batch = Batch(theirs, seed)
        expected = call(theirs, batch)
        with adapter.enabled(batch.gamma):
            same(call(theirs, batch), expected)


def test_the_adapter_is_what_sglang_calls(theirs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong answer of ours must show through SGLang's entry points, or the tests above compare SGLang to itself."""
    wrong = "dspark_ops.integrations.sglang."
    batch = Batch(theirs, 0)
    kept = {name: call(theirs, batch) for name, call in CALLS.items()}
    for name in ("allocate_verify_lens", "pad_to_bucket", "ragged_layout", "scatter_to_strided", "finalize_accept"):
        monkeypatch.setattr(wrong + name, lambda *a, **k: (_ for _ in ()).throw(ArithmeticError))
    with adapter.enabled(batch.gamma):
        for call in CALLS.values():
            with pytest.raises(ArithmeticError):
                call(theirs, batch)
    for name, call in CALLS.items():
        same(call(theirs, batch), kept[name])


def test_schedule_on_survival_that_rounds(theirs: SimpleNamespace) -> None:
    """Products may differ in the last bit, which decides only between survivals that close: never in these cases."""
    for seed in range(CASES):
        batch = Batch(theirs, seed)
        random = torch.Generator().manual_seed(seed)
        confidence = torch.rand(batch.bs, batch.gamma, generator=random)
        named = {"confidence": confidence, "budget": batch.budget, "cfg": batch.cfg}
        expected = theirs.ScheduleVerifyLensTopk.execute(**named)
        with adapter.enabled(batch.gamma):
            assert torch.equal(theirs.ScheduleVerifyLensTopk.execute(**named), expected)


def table_of(theirs: SimpleNamespace, fields: dict[str, Any]) -> Any:
    kind = theirs.SpsAdditiveCostTable if "bias_seconds" in fields else theirs.SpsCostTable
    return kind(**fields)


def test_budget_on_golden_tables(theirs: SimpleNamespace) -> None:
    planner = sys.modules[adapter._PLANNER]
    for case in golden_data.load("plan_budget"):
        survival = torch.tensor(case["survival"], dtype=torch.float32)
        cfg = theirs.DSparkScheduleConfig(gamma=survival.shape[1])
        named = {"history_survival_probs": survival, "sps_table": table_of(theirs, case["table"]), "cfg": cfg}
        expected = planner.compute_verify_token_budget(**named)
        with adapter.enabled(survival.shape[1]):
            decision = planner.compute_verify_token_budget(**named)
        assert decision.budget == expected.budget
        # T is a whole number of nanoseconds here, and these steps take milliseconds.
        assert decision.predicted_theta == pytest.approx(expected.predicted_theta, rel=1e-5)
        assert decision.predicted_step_seconds == pytest.approx(expected.predicted_step_seconds, rel=1e-5)


def test_sglangs_own_budget_planner_over_time(theirs: SimpleNamespace) -> None:
    """Its lag ring and generations, with the budget from here."""
    for case in golden_data.load("budget_planner"):
        pool = SimpleNamespace(req_to_token=torch.empty(case["pool_size"], 1))
        planner = theirs.HostConfidenceBudgetPlanner(
            sps_table=table_of(theirs, case["table"]),
            cfg=theirs.DSparkScheduleConfig(gamma=case["gamma"]),
            model_runner=SimpleNamespace(req_to_token_pool=pool),
        )
        planner.carry_steps = case["carry_steps"]
        with adapter.enabled(case["gamma"]):
            for step in case["steps"]:
                budget = planner.compute_budget(
                    confidence=torch.tensor(step["confidence"], dtype=torch.float32),
                    generation=torch.tensor(step["generation"]),
                    current_generation=torch.tensor(step["current_generation"]),
                    req_pool_indices_cpu=torch.tensor(step["slots"]),
                )
                assert budget == step["budget"]


def test_the_differences_that_are_meant(theirs: SimpleNamespace) -> None:
    """Faults 7, 12 and 13 of the peers: what the adapter's page says differs."""
    schedule, cap = theirs.ScheduleVerifyLensTopk.execute, theirs.CapCorrectLen.execute
    named = {"confidence": torch.tensor([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4]]), "budget": 4}
    short = theirs.DSparkScheduleConfig(gamma=3, max_verify_len=3)
    three = theirs.DSparkScheduleConfig(gamma=3, min_verify_len=3)
    cut = {"correct_len": torch.tensor([2], dtype=torch.int32), "verify_lens": torch.tensor([0], dtype=torch.int32)}
    with adapter.enabled(3):
        assert theirs.ScheduleVerifyLensTopk.execute(**named, cfg=short).tolist() == [3, 3]
        assert theirs.ScheduleVerifyLensTopk.execute(**{**named, "budget": 1}, cfg=three).tolist() == [4, 3]
        assert theirs.CapCorrectLen.execute(**cut)[0].tolist() == [0]
    assert schedule(**named, cfg=short).tolist() == [3, 2]
    assert cap(**cut)[0].tolist() == [-1]


def test_switching(theirs: SimpleNamespace) -> None:
    before = [theirs.CapCorrectLen.execute, looked_up("compact_row_index")]
    adapter.enable(3)
    assert theirs.CapCorrectLen.execute is not before[0]
    with pytest.raises(RuntimeError, match="on already"):
        adapter.enable(3)
    adapter.disable()
    adapter.disable()
    assert [theirs.CapCorrectLen.execute, looked_up("compact_row_index")] == before
    with pytest.raises(ValueError, match="gamma"):
        adapter.enable(0)


def test_modules_that_import_a_function_by_name(theirs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SGLang's verify step does: before `enable`, or while it is on, and all get their own back."""
    before = looked_up("compact_row_index")
    early, late = ModuleType("sglang.early"), ModuleType("sglang.late")
    vars(early)["compact_row_index"] = before
    monkeypatch.setitem(sys.modules, "sglang.early", early)
    monkeypatch.setitem(sys.modules, "sglang.late", late)
    with adapter.enabled(3):
        ours = vars(late)["compact_row_index"] = looked_up("compact_row_index")
        assert vars(early)["compact_row_index"] is ours is not before
    assert vars(early)["compact_row_index"] is vars(late)["compact_row_index"] is before


def test_another_version_of_sglang_is_left_as_it_is(theirs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    before = vars(theirs.CapCorrectLen)["execute"]
    monkeypatch.delattr(sys.modules[f"{rival.OPS}.dspark.dspark_verify_window"], "scatter_compact_to_strided_into")
    with pytest.raises(ImportError, match="scatter_compact_to_strided_into"):
        adapter.enable(3)
    assert vars(theirs.CapCorrectLen)["execute"] is before


@pytest.mark.parametrize("call", ["schedule", "out tokens"])
def test_a_draft_of_another_length_is_refused(theirs: SimpleNamespace, call: str) -> None:
    """Fault 9: lengths cut at the wrong γ would be wrong without a word."""
    batch = Batch(theirs, 0)
    with adapter.enabled(batch.gamma + 1), pytest.raises(ValueError, match=rf"gamma.*got {batch.gamma}"):
        CALLS[call](theirs, batch)


class Capture(TorchDispatchMode):
    """What a graph capture does to tensors: memory is handed out, and no launch that would fill it runs."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket in (torch.ops.aten.full, torch.ops.aten.full_like, torch.ops.aten.zeros):
            out.fill_(-7)
        return out


@pytest.mark.parametrize("call", ["cap", "finalize", "out tokens"])
def test_nothing_is_kept_from_a_capture(theirs: SimpleNamespace, call: str) -> None:
    batch = Batch(theirs, 0, bs=77)  # a size that no other test has made anything for
    expected = CALLS[call](theirs, batch)
    with adapter.enabled(batch.gamma):
        with Capture():
            CALLS[call](theirs, batch)
        same(CALLS[call](theirs, batch), expected)


def test_cost_tables_are_not_kept_without_bound(theirs: SimpleNamespace) -> None:
    tables = [theirs.SpsCostTable([1], [float(n)], 64) for n in range(1, 50)]
    for table in tables:
        assert adapter._table(table) is adapter._table(table)
        assert adapter._table(table).sample_steps_per_sec == tuple(table.sample_steps_per_sec)
    assert len(adapter._TABLES) <= adapter._MAX_TABLES
    adapter.disable()
    assert not adapter._TABLES


def test_scatter_into_a_workspace(theirs: SimpleNamespace) -> None:
    """SGLang's own is a Triton kernel only: held to its CPU function instead."""
    for seed in range(20):
        batch = Batch(theirs, seed)
        expected = CALLS["scatter"](theirs, batch)
        out = torch.full_like(expected, -99)
        with adapter.enabled(batch.gamma):
            looked_up("scatter_compact_to_strided_into")(
                compact=batch.compact, verify_lens=batch.verify_lens, out=out, stride=batch.width, fill_value=3.0
            )
        same(out, expected)
