"""Back ends under test, and the closing list of what was not run."""

from __future__ import annotations

import os

import pytest

import dspark_ops

if os.environ.get("TRITON_INTERPRET") == "1":
    import fast_interpreter

    fast_interpreter.install()


def cases_for(backend: str, cases: int) -> int:
    """How many of so many random cases a back end is given: an interpreter takes a thousand times as long."""
    return max(1, cases // 5) if backend == "triton_interpret" else cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", dspark_ops.available_backends("cpu"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("not run here")
    for backend in dspark_ops.backends():
        ok, reason = backend.available()
        if not ok:
            terminalreporter.line(f"back end {backend.name}: {reason}")
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.line(f"{report.nodeid}: {report.longrepr[-1] if report.longrepr else 'skipped'}")
