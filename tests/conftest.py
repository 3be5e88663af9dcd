"""Back ends under test, and the closing list of what was not run."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

import dspark_ops
from dspark_ops._backends import NotServed, get_backend
from dspark_ops._registry import stems

if os.environ.get("TRITON_INTERPRET") == "1":
    import fast_interpreter

    fast_interpreter.install()


def cases_for(backend: str, cases: int) -> int:
    """How many of so many random cases a back end is given: an interpreter takes a thousand times as long."""
    return max(1, cases // 5) if backend == "triton_interpret" else cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A back end that has only some operators is left out of the test files of the others."""
    if "backend" in metafunc.fixturenames:
        stem = metafunc.module.__name__.removeprefix("test_")
        backends = [get_backend(name) for name in dspark_ops.available_backends("cpu")]
        metafunc.parametrize("backend", [b.name for b in backends if stem not in stems() or b.serves(stem)])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """And of the cases of the others. Tests marked `full` take minutes: the ordinary run has a part of each lane."""

    def served(item: pytest.Item) -> bool:
        params = getattr(getattr(item, "callspec", None), "params", {})
        return not {"backend", "stem"} <= params.keys() or get_backend(params["backend"]).serves(params["stem"])

    items[:] = [item for item in items if served(item)]
    if os.environ.get("DSPARK_FULL") != "1":
        for item in items:
            if item.get_closest_marker("full"):
                item.add_marker(pytest.mark.skip(reason="part of the full lanes: make test-full"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    try:
        yield
    except NotServed as reason:
        if "backend" not in getattr(getattr(item, "callspec", None), "params", {}):
            raise
        pytest.skip(str(reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("not run here")
    for backend in dspark_ops.backends():
        ok, reason = backend.available()
        if not ok:
            terminalreporter.line(f"back end {backend.name}: {reason}")
    skipped: dict[tuple[str, str], int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[-1] if report.longrepr else "skipped"
        key = (report.nodeid.partition("[")[0], reason.removeprefix("Skipped: "))
        skipped[key] = skipped.get(key, 0) + 1
    for (test, reason), count in skipped.items():
        terminalreporter.line(f"{test} ({count}): {reason}")
