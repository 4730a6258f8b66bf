"""Compile the test of an export for this machine, and run it."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_COMPILERS: Final = ("cc", "gcc", "clang")
_TIME_LIMIT_S: Final = 300


@dataclass(frozen=True, slots=True)
class HostTest:
    """The test of an export on this machine.

    Attributes:
        num_wrong: How many outputs are wrong; -1 if the model does not run, None if the test was
            not compiled or took too long.
        message: What the compiler or the test printed as errors, or why neither ran.
    """

    num_wrong: int | None
    message: str = ""


def run_on_host(name: str, files: Mapping[str, bytes], flags: Sequence[str] = ()) -> HostTest:
    """Compile the test of an export and run it.

    Args:
        name: Prefix of the export's names in C.
        files: Files of the export.
        flags: Further flags of the compiler.
    """
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return HostTest(None, f"none of {', '.join(_COMPILERS)} is installed")
    try:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            for path in (f"{name}{suffix}" for suffix in (".h", ".c", "_weights.c", "_test.c")):
                (folder / path).write_bytes(files[path])
            for path in (f"{name}_weights.bin", f"{name}_external.h"):
                if path in files:
                    (folder / path).write_bytes(files[path])
            command = [
                compiler, "-std=c99", "-O1", "-ffp-contract=off", "-I.", *flags, "-o", "test",
                f"{name}.c", f"{name}_weights.c", f"{name}_test.c", "-lm",
            ]  # fmt: skip
            built = subprocess.run(
                command, cwd=folder, capture_output=True, timeout=_TIME_LIMIT_S, check=False
            )
            if built.returncode:
                return HostTest(None, _text(built.stderr))
            done = subprocess.run(
                [str(folder / "test")], capture_output=True, timeout=_TIME_LIMIT_S, check=False
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return HostTest(None, str(error))
    found = re.search(rb": (-?\d+) wrong", done.stdout)
    return HostTest(int(found[1]) if found else -1, _text(done.stderr))


def _text(printed: bytes) -> str:
    return printed.decode(errors="replace").strip()
