"""Triton in the ordinary run: a part of the interpreter's lane in a process of its own, and what needs no interpreter.

`make test-triton` runs the whole lane.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import dspark_ops
from dspark_ops import _registry

TESTS = Path(__file__).parent
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
inside_lane = os.environ.get("TRITON_INTERPRET") == "1"
SUBSET = [
    *(f"test_operators.py::test_equals_reference[triton_interpret-{stem}]" for stem in _registry.stems()),
    *(f"test_hostile.py::{name}" for name in ("test_slots_budget_base", "test_caps_tiers_and_rows")),
    "test_schedule_verify_lens.py::test_ties_go_by_position_then_request",
    "test_allocate_verify_lens.py::test_logits_history_and_offsets_equal_their_confidences",
    "test_allocate_verify_lens.py::test_past_1024_requests_and_up_to_the_limit[triton_interpret-near]",
    "test_plan_budget.py::test_min_gain_keeps_the_full_budget",
    "test_triton_lane.py::test_whole_blocks_reduce_as_elements_do",
    "test_triton_lane.py::test_many_programs_equal_the_reference",
    "test_triton_verify_metadata.py::test_out_keeps_addresses_and_bad_input",
]


@needs_triton
@pytest.mark.skipif(inside_lane, reason="this is the lane")
def test_interpreter_lane() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-k", "triton", "-p", "no:cacheprovider"]
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(TESTS.parent)}
    done = subprocess.run(
        [*command, *(str(TESTS / test) for test in SUBSET)], env=env, cwd=TESTS.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    passed = int(done.stdout.rsplit(" passed", 1)[0].rsplit(maxsplit=1)[-1])
    assert passed >= len(SUBSET), done.stdout[-1000:]


@needs_triton
@pytest.mark.skipif(not inside_lane, reason="needs TRITON_INTERPRET=1")
@pytest.mark.parametrize("stem", ["plan_budget", "schedule_verify_lens", "allocate_verify_lens"])
def test_many_programs_equal_the_reference(stem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of large batches, on the small cases that hold every kind of trouble."""
    from dspark_ops.testing import case, compare
    from dspark_ops.triton import _one_program

    monkeypatch.setattr(_one_program, "fits", lambda plan: False)
    for seed in range(40):
        compare(stem, case(stem, seed), "triton_interpret")


@needs_triton
@pytest.mark.skipif(not inside_lane, reason="needs TRITON_INTERPRET=1")
def test_whole_blocks_reduce_as_elements_do() -> None:
    """`fast_interpreter` against the interpreter's own reduction: the exact argmax, with ties, and a sort."""
    import fast_interpreter
    from block_reductions import kernel
    from triton.runtime.interpreter import ReduceOps

    g = torch.Generator().manual_seed(1)
    results = []
    for reduce in (fast_interpreter.stock_reduce, ReduceOps.generic_reduce):
        g.manual_seed(1)
        tau = torch.randint(1, 4, (64,), generator=g)
        t, keys = torch.randint(1, 3, (64,), generator=g).int(), torch.randint(0, 99, (64,), generator=g).int()
        best, ordered = torch.zeros(3, dtype=torch.int64), torch.zeros(64, dtype=torch.int32)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ReduceOps, "generic_reduce", reduce)
            kernel[(1,)](tau, t, keys, best, ordered, N=64)
        results.append((best, ordered))
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])
    assert torch.equal(results[0][1], keys.sort(descending=True).values)


def test_fake_cuda_tensors_have_shapes_and_compile() -> None:
    def step(confidence: torch.Tensor, step_ns: torch.Tensor) -> tuple[torch.Tensor, ...]:
        plan = dspark_ops.allocate_verify_lens(confidence, step_ns, history=confidence)
        survival = dspark_ops.prefix_survival(confidence)
        budget = dspark_ops.plan_budget(survival, step_ns, search="global").narrow(0, 0, 1)
        return *plan[:4], survival, *dspark_ops.schedule_verify_lens(survival, budget)

    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        graphs.append(graph)
        return graph.forward

    with FakeTensorMode():
        inputs = torch.empty(8, 7, device="cuda"), torch.empty(65, dtype=torch.int32, device="cuda")
        eager = step(*inputs)
        torch.compiler.reset()
        compiled = torch.compile(step, fullgraph=True, backend=keep)(*inputs)
    for a, b in zip(eager, compiled, strict=True):
        assert a.device.type == b.device.type == "cuda" and a.shape == b.shape and a.dtype == b.dtype
    assert [t.shape[0] for t in eager] == [8, 9, 8, 5, 8, 8, 5]
    assert sum("dspark" in str(node.target) for graph in graphs for node in graph.graph.nodes) == 4


def after_the_plan(device: str) -> list[torch.Tensor]:
    """Results of every operator from the layout on."""

    def i32(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.int32, device=device)

    lens, prefix, drafts, target = i32(8), i32(8).long(), i32(8, 7).long(), i32(64).long()
    layout = dspark_ops.ragged_layout(lens, 64, prefix=prefix, root_tokens=prefix, draft_tokens=drafts)
    tables = [dspark_ops.CompressorTable(ratio, i32(8, 4), 64) for ratio in (4, 128)]
    wide = dspark_ops.scatter_to_strided(i32(64, 5), layout.cu_seqlens, 8)
    accepted = dspark_ops.accept_greedy(drafts, target, lens, prefix)
    results = (
        layout, wide, accepted, dspark_ops.pad_to_bucket(lens, 64, 9),
        dspark_ops.compressor_layout(layout.cu_seqlens, lens, prefix, 64, tables),
        dspark_ops.state_rows(layout.cu_seqlens, lens, prefix, lens, 128, 1, 256, 8, 0),
        dspark_ops.state_blocks(i32(8, 4), lens, prefix, 4, 2, 128),
        dspark_ops.max_safe_verify_len(prefix, 4, 2, 8),
        dspark_ops.gather_from_strided(wide, layout.cu_seqlens, 64),
        dspark_ops.finalize_accept(lens, drafts, lens, prefix, target_tokens=target),
        dspark_ops.update_offset(i32(8).float(), i32(8, 7).float(), accepted.correct_len, lens),
    )  # fmt: skip
    return torch.utils._pytree.tree_leaves(results)


def test_fake_cuda_tensors_after_the_plan() -> None:
    with FakeTensorMode():
        fakes = after_the_plan("cuda")
    for fake, real in zip(fakes, after_the_plan("cpu"), strict=True):
        assert fake is real is None or (fake.device.type, fake.shape, fake.dtype) == ("cuda", real.shape, real.dtype)


def test_warmup_runs_every_padded_batch() -> None:
    from dspark_ops.triton import batches, warmup

    seen: list[int] = []
    warmup(100, 7, "cpu", seen.append)
    assert seen == batches(100) == [16, 32, 64, 100] and batches(16) == [16] and batches(3) == [3]
    warmup(20, 3, "cpu")  # the default step, on whatever serves a CPU
