"""CMSIS-NN for the tests: a double of it that is always there, and your own where it is."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from arenite.runtime.cexport.base.options import Extension
from arenite.runtime.cexport.export import CExport
from support.exported_c import WARNINGS, compiled

DOUBLE = Path(__file__).with_name("cmsis_nn_double")
MACROS = {
    Extension.NONE: (),
    Extension.DSP: ("-DARM_MATH_DSP",),
    Extension.MVE: ("-DARM_MATH_MVEI",),
}
VARIABLE = "ARENITE_CMSIS_NN"
"""Environment variable of the folder of your CMSIS-NN: its `Include`, and in `lib` its libraries
`host.a`, `cortex-m3.a` and so on, each built for that processor."""


@dataclass
class Double:
    """The double, compiled once for each extension."""

    folder: Path

    def library(self, export: CExport, folder: Path, extension: Extension) -> Path:
        """Return the shared library of an export with the double."""
        return compiled(
            export, folder, f"-I{DOUBLE}", *MACROS[extension], "-fsanitize=undefined",
            objects=[self._compiled(extension)],
        )  # fmt: skip

    def _compiled(self, extension: Extension) -> Path:
        path = self.folder / f"{extension}.o"
        if not path.exists():
            subprocess.run(
                ["gcc", "-std=c11", *WARNINGS[:2], "-Werror", "-O2", "-fPIC", *MACROS[extension],
                 "-c", DOUBLE / "functions.c", "-o", path],
                check=True,
            )  # fmt: skip
        return path


def own() -> Path:
    """Return the folder of your own CMSIS-NN, or skip."""
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} names no folder with CMSIS-NN")
    return Path(os.environ[VARIABLE])


def own_library(processor: str) -> Path:
    """Return its library for a processor, or skip."""
    path = own() / "lib" / f"{processor}.a"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    return path
