"""Builds the native CPU operators (`csrc/cpu`) as one stable-ABI library; says what was not built and why."""

import os
import shutil
from pathlib import Path
from subprocess import SubprocessError

from setuptools import setup
from setuptools.errors import CCompilerError, CompileError, ExecError, LinkError, PlatformError

try:
    import torch
    from torch.utils.cpp_extension import BuildExtension, CppExtension
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise SystemExit(
        "dspark_ops: the build needs torch and does not fetch it: `pip install torch`, then install dspark_ops with "
        "`pip install --no-build-isolation`."
    ) from None

ROOT = Path(__file__).parent
# The oldest torch whose stable ABI the sources use; the library then loads in every later one.
TORCH_TARGET = "0x020b000000000000"
FAILURES = (
    CCompilerError, CompileError, ExecError, LinkError, PlatformError, OSError, RuntimeError,
    SubprocessError,  # a compiler that does not even say its version
)  # fmt: skip


def remove_libraries(folder: Path) -> None:
    """Delete the native library in `folder`, whatever its suffix."""
    for path in folder.glob("_C*.so"):
        path.unlink()


class BuildOrExplain(BuildExtension):
    """A missing C++ compiler leaves a working package (reference back end) and a clear message.

    It never leaves the library of an earlier build, which would be loaded as if it belonged to these sources.
    """

    def run(self) -> None:
        if self.inplace:
            remove_libraries(ROOT / "dspark_ops")  # a library that is up to date is copied there again
        built = False
        try:
            super().run()
            built = True
        except FAILURES as error:
            if os.environ.get("DSPARK_REQUIRE_NATIVE") == "1":
                raise
            print(
                f"dspark_ops: native CPU back end NOT built ({error}); the reference back end will serve CPU tensors."
            )
        finally:
            if not built:
                remove_libraries(Path(self.build_lib) / "dspark_ops")


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
        depends=headers,
        include_dirs=[str(ROOT / "csrc")],
        py_limited_api=True,
        extra_link_args=checks,
        extra_compile_args={"cxx": [*flags, f"-DTORCH_TARGET_VERSION={TORCH_TARGET}"]},
    )


for name, tool, then in (
    ("CUDA", "nvcc", "not part of this release"),
    ("Ascend", "bisheng", "not part of this release"),
):
    found = shutil.which(tool)
    print(f"dspark_ops: {name} back end not built: {then} ({tool} {'found' if found else 'not found'}).")
print(f"dspark_ops: building the native CPU back end against torch {torch.__version__}.")

setup(
    ext_modules=[native_extension()],
    cmdclass={"build_ext": BuildOrExplain},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
