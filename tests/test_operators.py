"""For every operator: back end = reference on random cases, opcheck, torch.compile, fake tensors."""

from __future__ import annotations

import pytest
import torch

from dspark_ops import _backends, _registry
from dspark_ops.ops import plan_budget
from dspark_ops.testing import Mismatch, case, compare, run, written
from dspark_ops.testing.compare import assert_same

STEMS = _registry.stems()


@pytest.mark.parametrize("stem", STEMS)
def test_equals_reference(stem: str, backend: str) -> None:
    for seed in range(200):
        compare(stem, case(stem, seed), backend)


@pytest.mark.parametrize("stem", STEMS)
def test_reference_writes_every_element_and_only_outputs(stem: str) -> None:
    outputs = {i for i, _ in written(stem)}
    for seed in range(50):
        args = case(stem, seed)
        after = run(stem, args, "reference")
        for i, (a, b) in enumerate(zip(args, after, strict=True)):
            if isinstance(a, torch.Tensor) and i not in outputs:
                assert_same(stem, f"input {i}", b, a)


@pytest.mark.parametrize("stem", STEMS)
def test_opcheck(stem: str, backend: str) -> None:
    op = getattr(getattr(torch.ops, _backends.get_backend(backend).namespace), stem).default
    for seed in range(3):
        torch.library.opcheck(op, case(stem, seed))


@pytest.mark.parametrize("stem", STEMS)
def test_compiles_without_graph_break(stem: str) -> None:
    op = getattr(torch.ops.dspark, stem).default
    args = case(stem, 5)
    want = run(stem, args, "cpu")  # the same operator, called eagerly
    torch.compiler.reset()  # torch counts the operators of all cases together, and limits their number
    torch.compile(op, fullgraph=True, backend="aot_eager")(*args)
    for i, name in written(stem):
        if isinstance(args[i], torch.Tensor):
            assert_same(stem, name, args[i], want[i])


def test_compare_catches_a_wrong_bit() -> None:
    args = case("max_safe_verify_len", 7)
    want = run("max_safe_verify_len", args, "reference")[-1]
    with pytest.raises(Mismatch, match=r"safe_lens\[0\] is"):
        assert_same("max_safe_verify_len", "safe_lens", want + 1, want)


def test_opcheck_catches_an_output_that_is_not_declared_mutable() -> None:
    """The same operator with one `(a!)` left out of its schema: torch.compile would drop the write."""
    schema = str(torch.ops.dspark.plan_budget.default._schema).split("::", 1)[1]
    honest, lying = (
        torch.library.Library("dspark_honest", "FRAGMENT"),
        torch.library.Library("dspark_lying", "FRAGMENT"),
    )
    args = next(a for a in (case("plan_budget", seed) for seed in range(99)) if a[0].numel())
    for library, text in ((honest, schema), (lying, schema.replace("Tensor(a!) stats", "Tensor stats"))):
        library.define(text)
        library.impl("plan_budget", plan_budget.reference, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{library.ns}::plan_budget", plan_budget._check, lib=library)
    torch.library.opcheck(torch.ops.dspark_honest.plan_budget.default, args)
    with pytest.raises(Exception, match="mutat"):
        torch.library.opcheck(torch.ops.dspark_lying.plan_budget.default, args)
