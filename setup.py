"""Builds the native operators, one stable-ABI library per device; says what was not built and why."""

import importlib.util
import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from subprocess import SubprocessError

from setuptools import Extension, setup
from setuptools.errors import CCompilerError, CompileError, ExecError, LinkError, PlatformError

try:
    import torch
    from torch.utils import cpp_extension
    from torch.utils.cpp_extension import BuildExtension, CppExtension
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise SystemExit(
        "dspark_ops: the build needs torch and does not fetch it: `pip install torch`, then install dspark_ops with "
        "`pip install --no-build-isolation`."
    ) from None

ROOT = Path(__file__).parent
# A library carries a hash of its sources, by which dspark_ops knows one that was not built again.
build_id = runpy.run_path(str(ROOT / "dspark_ops/_sources.py"))["build_id"]
# The oldest torch whose stable ABI the sources use; the library then loads in every later one.
TORCH_TARGET = "0x020b000000000000"
CUDA_TARGETS = ("80", "90", "100", "120")
FAILURES = (
    CCompilerError, CompileError, ExecError, LinkError, PlatformError, OSError, RuntimeError,
    SubprocessError,  # a compiler that does not even say its version
)  # fmt: skip


def remove_libraries(folder: Path, name: str = "_C") -> None:
    """Delete the native library in `folder`, whatever its suffix."""
    for path in folder.glob(f"{name}*.so"):
        path.unlink()


class BuildOrExplain(BuildExtension):
    """What cannot be built leaves a working package (the reference serves instead) and a clear message.

    It never leaves the library of an earlier build, which would be loaded as if it belonged to these sources.
    """

    def run(self) -> None:
        names = [ext.name.rpartition(".")[2] for ext in self.extensions]
        if self.inplace:
            for name in ("_C", "_cuda", "_ascend"):
                remove_libraries(ROOT / "dspark_ops", name)  # one that is up to date is copied there again
        built = False
        try:
            super().run()
            built = True
        except FAILURES as error:
            self.explain("CPU", error)
        finally:
            for name in () if built else names:
                remove_libraries(Path(self.build_lib) / "dspark_ops", name)
        try:
            build_ascend(ROOT / "dspark_ops" if self.inplace else Path(self.build_lib).absolute() / "dspark_ops")
        except FAILURES as error:
            self.explain("Ascend", error)

    def build_extension(self, ext: Extension) -> None:
        if not ext.name.endswith("_cuda"):
            super().build_extension(ext)
            return
        try:
            super().build_extension(ext)
        except FAILURES as error:
            self.explain("CUDA", error)

    def copy_extensions_to_source(self) -> None:
        self.extensions = [ext for ext in self.extensions if Path(self.get_ext_fullpath_in_build(ext)).exists()]
        super().copy_extensions_to_source()

    def get_ext_fullpath_in_build(self, ext: Extension) -> str:
        """Where the library lies before it is copied into the sources."""
        return os.path.join(self.build_lib, self.get_ext_filename(self.get_ext_fullname(ext.name)))

    def explain(self, device: str, error: BaseException) -> None:
        """Say what is missing, unless DSPARK_REQUIRE_NATIVE=1 makes that an error."""
        if os.environ.get("DSPARK_REQUIRE_NATIVE") == "1":
            raise error
        print(f"dspark_ops: native {device} back end NOT built ({error}); the reference back end will serve instead.")


def native_extension() -> CppExtension:
    sources = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "csrc/cpu").glob("*.cpp"))
    headers = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "csrc").rglob("*.h"))
    flags = ["-std=c++17", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter"]
    sanitize = os.environ.get("DSPARK_SANITIZE") == "1"
    # Python builds with -fwrapv, under which no signed overflow would be reported.
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-wrapv"] if sanitize else []
    flags += ["-O1", "-g", "-fno-omit-frame-pointer", *checks] if sanitize else ["-O3"]
    return CppExtension(
        "dspark_ops._C",
        sources,
        depends=[*headers, "setup.py"],
        include_dirs=[str(ROOT / "csrc")],
        py_limited_api=True,
        extra_link_args=[*checks, *build_id(ROOT, "_C")],
        extra_compile_args={"cxx": [*flags, f"-DTORCH_TARGET_VERSION={TORCH_TARGET}"]},
    )


def cuda_home() -> str | None:
    """The toolkit's root as nvcc itself tells it: the nvcc on PATH may be a wrapper."""
    if not shutil.which("nvcc"):
        return None
    told = subprocess.run(["nvcc", "--dryrun", "-x", "cu", "-c", os.devnull], capture_output=True, text=True)
    binaries = re.search(r"^#\$ _HERE_=(.*)$", told.stderr, re.MULTILINE)
    return str(Path(binaries[1].strip()).parent) if binaries else None


def cuda_extension() -> list[Extension]:
    """The CUDA library: kernels for every target, launchers and registration. Needs no GPU to build or to load."""
    home = cuda_home()
    if home is None:
        print("dspark_ops: CUDA back end not built: nvcc not found.")
        return []
    if torch.version.cuda is None and os.environ.get("DSPARK_BUILD_CUDA") != "1":
        print("dspark_ops: CUDA back end not built: torch is a CPU build (DSPARK_BUILD_CUDA=1 builds it all the same).")
        return []
    cpp_extension.CUDA_HOME = home  # a CPU build of torch forces it to None
    spill_gate = ["-Xptxas", "-warn-spills,-warn-lmem-usage", "-Werror", "all-warnings"]
    newest = CUDA_TARGETS[-1]
    targets = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in CUDA_TARGETS]
    targets.append(f"-gencode=arch=compute_{newest},code=compute_{newest}")
    sources = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "csrc/cuda").glob("*.c*") if p.suffix in (".cu", ".cpp"))
    headers = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "csrc").rglob("*.*h"))
    return [
        CppExtension(
            "dspark_ops._cuda",
            sources,
            depends=[*headers, "setup.py"],
            include_dirs=[str(ROOT / "csrc"), f"{home}/include"],
            library_dirs=[f"{home}/lib64"],
            libraries=["cudart_static", "rt", "dl"],
            py_limited_api=True,
            extra_link_args=build_id(ROOT, "_cuda"),
            extra_compile_args={
                # The stream of the current device is in the stable ABI from 2.13 on.
                "cxx": ["-std=c++17", "-O2", "-fvisibility=hidden", "-DTORCH_TARGET_VERSION=0x020d000000000000"],
                "nvcc": ["-std=c++17", "-O3", "-fmad=false", "-t0", *spill_gate, *targets],
            },
        )
    ]


def build_ascend(folder: Path) -> None:
    """The Ascend library, by CMake (CMakeLists.txt), where CANN is. SOC_VERSION names the chip."""
    remove_libraries(folder, "_ascend")
    if not os.environ.get("ASCEND_HOME_PATH"):
        print("dspark_ops: Ascend back end not built: CANN not found (ASCEND_HOME_PATH is not set).")
        return
    found = importlib.util.find_spec("torch_npu")
    if found is None or found.origin is None:
        raise RuntimeError("torch_npu is not installed")
    build = ROOT / "build/ascend"
    define = {
        "TORCH_ROOT": Path(torch.__file__).parent,
        "TORCH_NPU_ROOT": Path(found.origin).parent,
        "CMAKE_LIBRARY_OUTPUT_DIRECTORY": folder,
    }
    if os.environ.get("SOC_VERSION"):
        define["SOC_VERSION"] = os.environ["SOC_VERSION"]
    subprocess.run(["cmake", "-S", ROOT, "-B", build, *(f"-D{k}={v}" for k, v in define.items())], check=True)
    subprocess.run(["cmake", "--build", build, "-j"], check=True)


print(f"dspark_ops: building the native CPU back end against torch {torch.__version__}.")

setup(
    ext_modules=[native_extension(), *cuda_extension()],
    cmdclass={"build_ext": BuildOrExplain},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
