"""A file in `runtime/core/steps` is all that an operator costs the core."""

import re
from pathlib import Path

import pytest

from arenite.runtime import _core

CORE = Path(__file__).parents[2] / "runtime" / "core"
REGISTERED = re.compile(r"program::Operator::(\w+),\s*make_\w+(?:,\s*KernelSet::(\w+))?}")


def registered(folder):
    """The operators that the files of a folder register, and the kernel set of each."""
    found = {path.name: REGISTERED.findall(path.read_text()) for path in folder.glob("*.cpp")}
    return {name: operators for name, operators in found.items() if operators}


def test_the_linker_drops_no_step():
    found = registered(CORE / "steps").values()
    # What stands in where another kernel cannot is no kernel to choose.
    expected = {name for names in found for name, kernels in names if kernels != "fallback"}
    assert set(_core.supported()) == expected


def test_every_file_of_steps_registers_what_it_makes():
    assert registered(CORE / "steps").keys() == {
        path.name for path in (CORE / "steps").glob("*.cpp")
    }


@pytest.mark.parametrize("source", ["registry.cpp", "CMakeLists.txt"])
def test_nothing_else_names_a_step(source):
    text = (CORE / source).read_text()
    assert not re.findall(r"make_(?!step\b)\w+|steps/\w+", text)
