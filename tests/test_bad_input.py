"""One table of what the functions refuse, by families in bad_*.py; and the refusals that need a test of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import bad_accept
import bad_compressor
import bad_layout
import bad_planning
import pytest
import torch
from bad_planning import INT, LONG, STEP, C, S, alloc
from mutations import mutations

import dspark_ops
from dspark_ops import _registry
from dspark_ops._backends import get_backend
from dspark_ops.testing import compare, run

TABLE = bad_planning.TABLE + bad_layout.TABLE + bad_compressor.TABLE + bad_accept.TABLE


@pytest.mark.parametrize(("call", "kw", "error", "text"), TABLE, ids=[f"{c.__name__}-{t[:60]}" for c, _, _, t in TABLE])
def test_is_refused(
    call: Callable[..., object], kw: dict[str, Any], error: type[Exception], text: str, backend: str
) -> None:
    with pytest.raises(error) as caught, dspark_ops.use_backend(backend):
        call(**kw)
    assert text in str(caught.value)


@pytest.mark.parametrize("call", dict.fromkeys(call for call, *_ in TABLE))
def test_the_calls_of_the_table_are_good_as_they_are(call: Callable[..., object]) -> None:
    call()


def outcome(stem: str, args: tuple[Any, ...], name: str) -> str:
    """ "accepted", "refused", or the error that no operator may raise."""
    try:
        run(stem, args, name)
    except (ValueError, TypeError, RuntimeError):
        return "refused"
    except Exception as error:
        return f"raised {error!r}"
    return "accepted"


@pytest.mark.parametrize("stem", _registry.stems())
def test_back_ends_refuse_the_same_direct_calls(stem: str) -> None:
    """Two checks of one contract, in Python and in C++; and what both accept, bad as it may look, has one meaning."""
    wrong = []
    for seed in range(4):
        for text, args in mutations(stem, seed):
            reference, cpu = (outcome(stem, args, name) for name in ("reference", "cpu"))
            if reference != cpu or reference.startswith("raised"):
                wrong.append(f"seed {seed}, {text}: the reference {reference}, cpu {cpu}")
            elif reference == "accepted":
                compare(stem, args, "cpu")
    assert not wrong, "\n".join(wrong)


def test_other_device_is_refused() -> None:
    with pytest.raises(ValueError, match="step_ns: expected a tensor on cpu, got one on meta"):
        alloc(step_ns=STEP.to("meta"))


def test_backend_that_is_missing_says_why() -> None:
    with (
        pytest.raises(ValueError, match=r"backend: expected one of reference, cpu, .*got 'gpu'"),
        dspark_ops.use_backend("gpu"),
    ):
        pass
    with pytest.raises(RuntimeError, match="backend 'cuda' is not available: "), dspark_ops.use_backend("cuda"):
        pass


def test_backend_refuses_other_devices() -> None:
    with (
        dspark_ops.use_backend("cpu"),
        pytest.raises(RuntimeError, match="backend 'cpu' serves cpu tensors, got one on meta"),
    ):
        dspark_ops.prefix_survival(C.to("meta"))


def test_direct_call_of_a_native_operator_is_memory_safe() -> None:
    """torch.ops.dspark skips the Python checks; the binding still refuses what would read or write out of bounds."""
    out = torch.empty(4, 7)
    with pytest.raises(RuntimeError, match="survival: expected size 3 in dimension 0, got 4"):
        torch.ops.dspark.prefix_survival(C[:3], False, None, None, None, None, None, False, None, None, None, out, None)
    with pytest.raises(RuntimeError, match="stats: expected size 5 in dimension 0, got 4"):
        torch.ops.dspark.plan_budget(S, STEP, 0, None, None, 1, 0, 1e-6, 0, -1, 0, None, False, LONG, None)


@pytest.mark.parametrize("stem", ["plan_budget", "schedule_verify_lens"])
def test_direct_call_reads_strided_inputs(stem: str, backend: str) -> None:
    """The operator itself copes, so a compiled graph that hands it a strided tensor does too."""
    op = getattr(getattr(torch.ops, get_backend(backend).namespace), stem)
    rows = torch.rand(7, 4).T
    lens, stats, want = INT.clone(), torch.empty(5, dtype=torch.int64), torch.empty(5, dtype=torch.int64)
    common = (None, 1, 0, 1e-6)
    for survival, out in ((rows, stats), (rows.contiguous(), want)):
        if stem == "plan_budget":
            op(survival, STEP, 0, None, *common, 0, -1, 0, None, False, out, None)
        else:
            op(survival, 9, None, STEP, 0, None, *common, -1, None, False, lens, out)
    assert torch.equal(stats, want)


def test_value_checks_are_off_unless_asked_for() -> None:
    code = (
        "import torch, dspark_ops\n"
        "t = torch.tensor([8, 4], dtype=torch.int32)\n"
        "dspark_ops.schedule_verify_lens(torch.full((2, 2), 0.5), 1, tiers=t)\n"
    )
    run = lambda **env: subprocess.run(  # noqa: E731
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True
    )
    assert run(DSPARK_CHECK="0").returncode == 0
    checked = run(DSPARK_CHECK="1")
    assert checked.returncode != 0
    assert "ValueError: tiers: expected strictly ascending values, got [8, 4]" in checked.stderr
