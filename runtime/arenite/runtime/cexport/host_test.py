"""Compile the test of an export for this machine, and run it."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_COMPILERS: Final = ("cc", "gcc", "clang")
_TIME_LIMIT_S: Final = 300


def num_wrong(name: str, files: Mapping[str, bytes], flags: Sequence[str] = ()) -> int | None:
    """Return how many outputs of an export's test are wrong; -1 if the model does not run.

    Args:
        name: Prefix of the export's names in C.
        files: Files of the export.
        flags: Further flags of the compiler.

    Returns:
        None where the test cannot be compiled on this machine, or takes too long.
    """
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for path in (f"{name}{suffix}" for suffix in (".h", ".c", "_weights.c", "_test.c")):
            (folder / path).write_bytes(files[path])
        weights = f"{name}_weights.bin"
        if weights in files:
            (folder / weights).write_bytes(files[weights])
        command = [
            compiler, "-std=c99", "-O1", "-ffp-contract=off", *flags,
            f'-D{name.upper()}_WEIGHTS_FILE="{folder / weights}"', "-o", "test",
            f"{name}.c", f"{name}_weights.c", f"{name}_test.c", "-lm",
        ]  # fmt: skip
        try:
            built = subprocess.run(
                command, cwd=folder, capture_output=True, timeout=_TIME_LIMIT_S, check=False
            )
            if built.returncode:
                return None
            done = subprocess.run(
                [str(folder / "test")], capture_output=True, timeout=_TIME_LIMIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    found = re.search(rb": (-?\d+) wrong", done.stdout)
    return int(found[1]) if found else -1
