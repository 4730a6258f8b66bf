"""A valid program, for others to damage."""

import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.strategies import find
from support.edited_programs import file_of
from support.running import MANY_KINDS
from support.tiny_onnx import parse, save, with_random_weights


@pytest.fixture(scope="package")
def assembly(tmp_path_factory):
    """The parts of a valid program with many kinds of steps."""
    folder = tmp_path_factory.mktemp("model")
    compiled = compile_model(save(folder, with_random_weights(parse(MANY_KINDS))))
    return compiled.assemble(find("best")(compiled.source.problem))


@pytest.fixture(scope="package")
def valid(assembly):
    """Its bytes."""
    return file_of(assembly)
