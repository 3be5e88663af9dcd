"""Every short script in examples/ runs as it stands."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_runs(script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_examples_are_short_and_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    assert len(SCRIPTS) >= 2
    for script in SCRIPTS:
        code = [line for line in script.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert len(code) <= 30, script.name
        assert f"`{script.name}`" in listed, f"{script.name} is not in examples/README.md"
