"""The build: what it says without torch, what a failed one leaves behind, what a source archive holds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from workshop import ROOT, Workshop

from dspark_ops import _backends, _emulation, _sources


def test_without_torch_it_says_what_to_install() -> None:
    program = "import runpy, sys; sys.modules['torch'] = None; runpy.run_path('setup.py')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(r"dspark_ops: .*`pip install torch`.*`pip install --no-build-isolation`\.\n", done.stderr)


@pytest.mark.parametrize("required", ["0", "1"])
def test_a_failed_build_leaves_no_older_library(tmp_path: Path, required: str) -> None:
    shop = Workshop(tmp_path / "shop", CXX="false", DSPARK_REQUIRE_NATIVE=required)
    stale = [
        tmp_path / folder / "dspark_ops" / name
        for folder in ("shop", "built")
        for name in ("_C.abi3.so", "_C.cpython-39-x86_64-linux-gnu.so")
    ]
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (0, 0))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--build-lib", str(tmp_path / "built")]
    done = subprocess.run(command, cwd=shop.folder, env=shop.env, capture_output=True, text=True)
    assert done.returncode == int(required), done.stderr
    assert ("native CPU back end NOT built" in done.stdout) == (required == "0")
    assert not [path for path in stale if path.exists()]


def test_refuses_to_choose_between_two_libraries(tmp_path: Path) -> None:
    assert _backends._load_native(tmp_path)[1].startswith("the native library is not built")
    (tmp_path / "_C.abi3.so").touch()
    assert _backends._load_native(tmp_path)[1].startswith("the native library does not load")
    (tmp_path / "_C.so").touch()
    ok, reason = _backends._load_native(tmp_path)
    assert not ok and reason.startswith("more than one native library, so one is stale: _C.abi3.so, _C.so;")


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_a_stale_library_is_loaded_with_a_warning_and_only_in_a_checkout(tmp_path: Path) -> None:
    package = tmp_path / "dspark_ops"
    package.mkdir()
    shutil.copy(ROOT / "setup.py", tmp_path)
    for folder in ("common", "cpu"):
        shutil.copytree(ROOT / "csrc" / folder, tmp_path / "csrc" / folder)
    option = _sources.build_id(tmp_path, "_C")
    command = ["gcc", "-shared", "-x", "c", os.devnull, "-o", str(package / "_C.so")]
    subprocess.run([*command, *option], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _backends._load_native(package) == (True, "loaded _C.so")
        (tmp_path / "csrc/cpu/new.h").touch()
        with pytest.raises(RuntimeWarning, match=r"_C\.so .* run `python setup\.py build_ext --inplace`"):
            _backends._load_native(package)
        (tmp_path / "setup.py").unlink()
        assert _backends._load_native(package) == (True, "loaded _C.so")


def test_an_installed_package_holds_what_the_emulations_are_built_from(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    held, wanted = (
        {str(p.relative_to(root)) for p in root.rglob("*") if p.suffix in _emulation.SUFFIXES}
        for root in (tmp_path / "dspark_ops/csrc", ROOT / "csrc")
    )
    assert {name for name in wanted - held if not name.startswith(("cpu/", "cuda/tools/"))} == set()
    assert {"common/params.h", "cuda/plan_budget.cu", "emulation/cuda_on_host/machine.cpp"} <= held


def test_a_source_archive_can_build_and_test_itself(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    held = set((tmp_path / "dspark_ops.egg-info/SOURCES.txt").read_text().splitlines())  # what sdist packs
    folders = ("csrc", "dspark_ops", "tests", "examples", "bench", "docs")
    files = {str(p.relative_to(ROOT)) for folder in folders for p in (ROOT / folder).rglob("*.*") if p.is_file()}
    wanted = {name for name in files if not name.endswith((".so", ".pyc"))}
    wanted |= {"setup.py", "pyproject.toml", "Makefile", "README.md", "requirements-build.txt", "dspark_ops/py.typed"}
    assert wanted >= {"tests/golden/accept.json", "csrc/common/params.h", "examples/traces/greedy_small.npz"}
    assert wanted <= held, wanted - held
    assert not [name for name in held if name.endswith((".so", ".pyc"))]
