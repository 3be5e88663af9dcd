"""For every operator: back end = reference on random cases, opcheck, torch.compile, fake tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import dspark_ops
from conftest import cases_for
from dspark_ops import _backends, _registry
from dspark_ops.ops import plan_budget
from dspark_ops.testing import Mismatch, case, compare, run, written
from dspark_ops.testing.compare import assert_same

STEMS = _registry.stems()
Case = tuple[Any, ...]


def first_seed(stem: str, optional: bool = False) -> int:
    """The first seed whose written tensors all have elements, with every optional one present if asked for."""

    def full(t: torch.Tensor | None) -> bool:
        return not optional if t is None else t.numel() > 0

    return next(seed for seed in range(1000) if all(full(case(stem, seed)[i]) for i, _ in written(stem)))


def is_poison(arg: object) -> bool:
    """A pure output: a case fills it with poison; a tensor that is updated in place comes with values."""
    return isinstance(arg, torch.Tensor) and arg.numel() > 0 and bool((arg.view(torch.uint8) == 0xAB).all())


def assert_writes_all(stem: str, args: Case, kernel: Callable[[Case], Case]) -> None:
    """Raise Mismatch if an output depends on what was in it before, or an input is not what it was."""
    outputs = dict(written(stem))
    names = [a.name for a in getattr(torch.ops.dspark, stem).default._schema.arguments]
    # 0xAB with every bit turned: an element of either poison that stays differs between the two.
    other = tuple(
        torch.full_like(a.view(torch.uint8), 0x54).view(a.dtype) if i in outputs and is_poison(a) else a
        for i, a in enumerate(args)
    )
    first, second = kernel(args), kernel(other)
    for i, (before, a, b) in enumerate(zip(args, first, second, strict=True)):
        if isinstance(before, torch.Tensor):
            for after in (a, b):
                assert_same(stem, names[i], after, first[i] if i in outputs else before)


@pytest.mark.parametrize("stem", STEMS)
def test_equals_reference(stem: str, backend: str) -> None:
    for seed in range(cases_for(backend, 200)):
        compare(stem, case(stem, seed), backend)


@pytest.mark.parametrize("stem", STEMS)
def test_reference_writes_every_element_and_only_outputs(stem: str) -> None:
    for seed in range(50):
        assert_writes_all(stem, case(stem, seed), lambda args: run(stem, args, "reference"))


@pytest.mark.parametrize("stem", [stem for stem in STEMS if stem != "update_offset"])
def test_an_element_left_unwritten_is_noticed(stem: str) -> None:
    """For every output in turn. update_offset has none to forget: it reads what it writes."""
    args = case(stem, first_seed(stem))
    for i, name in written(stem):
        if not is_poison(args[i]):
            continue

        def forgetful(args: Case, i: int = i) -> Case:
            after = run(stem, args, "reference")
            after[i].view(-1)[-1:] = args[i].view(-1)[-1:]
            return after

        with pytest.raises(Mismatch, match=f"{stem}: {name}"):
            assert_writes_all(stem, args, forgetful)


def test_a_written_input_is_noticed() -> None:
    def rude(args: Case) -> Case:
        after = run("max_safe_verify_len", args, "reference")
        after[0][0] += 1
        return after

    with pytest.raises(Mismatch, match="max_safe_verify_len: start_pos"):
        assert_writes_all("max_safe_verify_len", case("max_safe_verify_len", 7), rude)


@pytest.mark.parametrize("stem", STEMS)
def test_opcheck(stem: str, backend: str) -> None:
    op = getattr(getattr(torch.ops, _backends.get_backend(backend).namespace), stem).default
    for seed in range(3):
        torch.library.opcheck(op, case(stem, seed))


@pytest.mark.parametrize("stem", STEMS)
def test_compiles_without_graph_break(stem: str) -> None:
    op = getattr(torch.ops.dspark, stem).default
    for seed in sorted({first_seed(stem), first_seed(stem, optional=True)}):
        args = case(stem, seed)
        want = run(stem, args, "cpu")  # the same operator, called eagerly
        torch.compiler.reset()  # torch counts the operators of all cases together, and limits their number
        torch.compile(op, fullgraph=True, backend="aot_eager")(*args)
        for i, name in written(stem):
            if isinstance(args[i], torch.Tensor):
                assert_same(stem, name, args[i], want[i])


class NoHostRead(TorchDispatchMode):
    """Fails on what would wait for a device: a tensor value read by the host, or a copy from it."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "lift_fresh")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in self.FORBIDDEN, f"{name} needs the host"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("stem", STEMS)
def test_reference_never_reads_a_value_on_the_host(stem: str) -> None:
    """On a device without a native back end the reference serves: it must not synchronise, and can be captured."""
    op = getattr(torch.ops.dspark_reference, stem).default
    for seed in range(40):
        args = case(stem, seed)
        with NoHostRead():
            op(*args)


def test_no_host_read_notices() -> None:
    values, index = torch.arange(3), torch.tensor(1)
    with pytest.raises(AssertionError, match="_local_scalar_dense needs the host"), NoHostRead():
        values[index]


def test_operators_do_not_record_gradients(backend: str) -> None:
    confidence = torch.full((3, 2), 0.5, requires_grad=True)
    with dspark_ops.use_backend(backend):
        assert not dspark_ops.prefix_survival(confidence).requires_grad


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
