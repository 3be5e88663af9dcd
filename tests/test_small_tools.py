"""What many modules lean on: files replaced as a whole, one torch thread for a while, a light import."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from workshop import ROOT

from dspark_ops import _files
from dspark_ops._files import write_atomic
from dspark_ops._threads import one_thread
from dspark_ops.ops import _fill


def test_two_threads_may_write_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins while the first has written but not yet replaced: neither may see the other's half."""
    path, sync = tmp_path / "table.json", _files.os.fsync

    def interrupted(descriptor: int) -> None:
        monkeypatch.setattr(_files.os, "fsync", sync)
        other = threading.Thread(target=write_atomic, args=(path, "second"))
        other.start()
        other.join()
        assert path.read_text() == "second"

    monkeypatch.setattr(_files.os, "fsync", interrupted)
    write_atomic(path, "the first")
    assert path.read_text() == "the first" and list(tmp_path.iterdir()) == [path]


def test_one_thread_restores_the_number() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with pytest.raises(KeyError), one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 3
        first, second = one_thread(), one_thread()  # of two callers, neither of whom waits for the other
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert torch.get_num_threads() == 1
        second.__exit__(None, None, None)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_importing_the_package_is_light() -> None:
    """Neither the command line's libraries nor the compiler, which alone takes some two seconds."""
    program = "import sys, torch; before = set(sys.modules); import dspark_ops; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch._dynamo", "triton", "sympy", "matplotlib", "typer", "rich"} & set(done.stdout.split())


def test_a_constant_is_marked_as_the_compiler_marks_it() -> None:
    def marked() -> None: ...

    torch.compiler.assume_constant_result(marked)
    assert vars(marked).items() <= vars(_fill._constant_bits).items()
