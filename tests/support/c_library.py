"""The C library, built and installed once for the tests, without Python."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support import reuse_objects

CHECKOUT = Path(__file__).parents[2]
_BUILD = CHECKOUT / "build" / "capi"
_TOOLS = ("cmake", "gcc", "g++", "flatc", "pkg-config")


def run(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Return what a command printed; its failure shows all of it."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done


def install() -> Path:
    """Return where the library is installed, or skip the test."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    prefix = _BUILD / "installed"
    _BUILD.mkdir(parents=True, exist_ok=True)
    with (_BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers of the tests build in the same folder
        run(
            ["cmake", "-S", CHECKOUT / "runtime" / "capi", "-B", _BUILD,
             f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib",
             f"-DCMAKE_CXX_COMPILER_LAUNCHER={sys.executable};-IS;{reuse_objects.__file__}"]
        )  # fmt: skip
        run(["cmake", "--build", _BUILD, "-j2"])
        run(["cmake", "--install", _BUILD])
    return prefix


def environment(prefix: Path) -> dict[str, str]:
    """Return the variables with which the library is found to compile and to run."""
    return os.environ | {
        "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"),
        "LD_LIBRARY_PATH": str(prefix / "lib"),
    }
