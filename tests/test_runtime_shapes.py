"""What vLLM and TensorRT-LLM carry, from a plan."""

from __future__ import annotations

import pytest
import torch

import dspark_ops
from dspark_ops.integrations import tensorrt_llm, vllm


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def test_query_start_loc_never_decreases_in_its_tail() -> None:
    cu = ints(0, 3, 3, 7)
    workspace = torch.full((7,), -5, dtype=torch.int32)
    assert vllm.query_start_loc(cu, 6, out=workspace) is workspace
    assert workspace.tolist() == [0, 3, 3, 7, 7, 7, 7]
    assert vllm.query_start_loc(cu, 3).tolist() == cu.tolist()
    assert vllm.query_start_loc(ints(0), 2).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="max_num_reqs"):
        vllm.query_start_loc(cu, 2)
    with pytest.raises(ValueError, match="out"):
        vllm.query_start_loc(cu, 6, out=workspace[:3])


def test_query_start_loc_of_a_batch_with_prompts() -> None:
    """Two decoding requests around a piece of a prompt of 20 tokens, and one that does not run."""
    lens, others = ints(4, 1, 0, 3), ints(1, 20, 0, 1)
    cu = dspark_ops.ragged_layout(lens, 8).cu_seqlens
    assert vllm.query_start_loc(cu, 6, num_non_draft_tokens=others).tolist() == [0, 4, 24, 24, 27, 27, 27]
    assert vllm.cu_num_logits(cu).tolist() == [0, 4, 5, 5, 8]
    decoding = lens.clamp(max=1)
    assert torch.equal(vllm.query_start_loc(cu, 6, num_non_draft_tokens=decoding), vllm.query_start_loc(cu, 6))
    assert vllm.query_start_loc(ints(0), 2, num_non_draft_tokens=ints()).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="num_non_draft_tokens"):
        vllm.query_start_loc(cu, 6, num_non_draft_tokens=others[:2])


def test_counts_of_a_step() -> None:
    lens, commit = ints(4, 1, 0, 8), ints(2, 1, 0, 8)
    assert vllm.num_draft_tokens(lens).tolist() == [3, 0, 0, 7]
    assert vllm.num_rejected_tokens(lens, commit).tolist() == [2, 0, 0, 0]
    assert tensorrt_llm.kv_len_correction(lens, commit).tolist() == [-2, 0, 0, 0]
    cu = dspark_ops.ragged_layout(lens, 13).cu_seqlens
    assert torch.equal(vllm.cu_num_logits(cu), cu)
    with pytest.raises(ValueError, match="commit_len"):
        vllm.num_rejected_tokens(lens, commit[:2])


@pytest.mark.parametrize("seed", range(30))
def test_windows_fill_a_cell_exactly(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    batch, slots, width = 6, 9, 8
    caps = torch.randint(1, width + 1, (batch,), generator=random).int()
    rows = int(torch.randint(batch + 3, int(caps.sum()) + 4, (1,), generator=random))
    plan = dspark_ops.allocate_verify_lens(
        torch.rand(batch, width - 1, generator=random),
        torch.arange(200, dtype=torch.int32) * 10 + 1000,
        search="global",
        caps=caps,
        max_rows=rows - tensorrt_llm.padding_rows(batch, slots),
    )
    lens, cu = tensorrt_llm.exact_windows(plan.verify_lens, caps, rows, slots)
    assert int(lens.sum()) == rows == int(cu[-1])
    assert bool((lens[:batch] >= plan.verify_lens).all())
    assert bool((lens[:batch] <= caps).all())
    assert lens[batch:].tolist() == [1] * (slots - batch)


def test_windows_without_slack_leave_the_plan_alone() -> None:
    lens, _ = tensorrt_llm.exact_windows(ints(3, 2), ints(8, 8), 5, 2)
    assert lens.tolist() == [3, 2]
    assert tensorrt_llm.exact_windows(ints(3, 2), ints(4, 2), 9, 3).lens.tolist() == [4, 2, 1], "the caps end it"
    assert tensorrt_llm.exact_windows(ints(3, 2), ints(4, 4), 4, 3).lens.tolist() == [3, 2, 1], "it does not fit"
    assert tensorrt_llm.exact_windows(ints(), ints(), 2, 2).lens.tolist() == [1, 1]
