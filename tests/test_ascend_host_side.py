"""The host side of the Ascend back end: launches against a fake runtime, and a build against torch_npu's own headers.

CANN cannot be had here, so nothing is linked with it: CMakeLists.txt is run with the emulation in CANN's place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from dspark_ops import ascend_host
from dspark_ops._emulation import sources

HERE = Path(__file__).parent
TORCH_NPU = "torch-npu==2.13.0"
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")


def run(command: list[str], **env: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_launches_hand_over_their_parameters(tmp_path: Path) -> None:
    out = tmp_path / "launch"
    units = [str(HERE / "ascend_launch.cpp"), str(sources() / "ascend/host/launch.cpp")]
    run([*ascend_host.compile_command(), *units, "-o", str(out)])
    run([str(out)])


@pytest.fixture(scope="module")
def torch_npu() -> Path:
    """The headers of torch_npu's wheel, in the user's cache; the package itself is never installed or imported."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dspark_ops" / TORCH_NPU
    base.mkdir(parents=True, exist_ok=True)
    with open(base / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root = base / "torch_npu"
        if not (base / "done").exists():
            download = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", TORCH_NPU, "-d", str(base)]
            done = subprocess.run(download, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"{TORCH_NPU} cannot be had: {done.stderr.strip().splitlines()[-1:]}")
            (wheel,) = base.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(base, [n for n in archive.namelist() if n.startswith("torch_npu/include/")])
            wheel.unlink()
            (base / "done").touch()
    return root


@pytest.mark.full
def test_builds_against_torch_npu(torch_npu: Path, tmp_path: Path) -> None:
    """Configures and compiles everything that CMakeLists.txt names; what CANN and torch_npu would supply stays open."""
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    cann = tmp_path / "cann"
    folder = cann / "compiler/tikcpp/ascendc_kernel_cmake"
    folder.mkdir(parents=True)
    shutil.copy(HERE / "fake_cann/ascendc.cmake", folder)
    # torch_npu's library is not in reach of the linker: an empty one takes its place.
    (cann / "lib64").mkdir()
    run(["g++", "-shared", "-x", "c++", os.devnull, "-o", str(cann / "lib64/libtorch_npu.so")])
    build = tmp_path / "build"
    define = {"TORCH_ROOT": Path(torch.__file__).parent, "TORCH_NPU_ROOT": torch_npu}
    run(
        ["cmake", "-S", str(HERE.parent), "-B", str(build), *(f"-D{k}={v}" for k, v in define.items())],
        ASCEND_HOME_PATH=str(cann),
    )
    run(["cmake", "--build", str(build)])
    symbols = run(["nm", "-C", "--undefined-only", str(build / "_ascend.so")])
    launches = [f"aclrtlaunch_dspark_{stem}" for stem in ascend_host.STEMS]
    for name in ("OpCommand::RunOpApiV2", "getCurrentNPUStream", "AclrtGetDeviceInfo", *launches):
        assert name in symbols, symbols


def test_cmake_says_what_is_missing(tmp_path: Path) -> None:
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    done = subprocess.run(
        ["cmake", "-S", str(HERE.parent), "-B", str(tmp_path), "-DASCEND_HOME_PATH=/nowhere"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0 and "ASCEND_HOME_PATH: expected a folder, got '/nowhere'" in done.stderr
