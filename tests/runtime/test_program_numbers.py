"""Numbers that the format of program files has no room for are refused in one line."""

import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.errors import AreniteError
from arenite.runtime import UnwritableProgramError
from arenite.runtime.program import program_pieces
from arenite.strategies import find
from support.tiny_onnx import parse, save

FAR = "(float[1,1,4,4] x) => (y) <float[1,1,1,1] w> {{ y = Conv<strides=[{0}, {0}]>(x, w) }}"


def pieces(path):
    compiled = compile_model(path)
    return list(program_pieces(compiled.assemble(find("best")(compiled.source.problem))))


def test_a_stride_beyond_32_bits_is_refused(tmp_path):
    path = save(tmp_path, parse(FAR.format(2**40)))
    with pytest.raises(UnwritableProgramError, match="does not fit the program file"):
        pieces(path)
    assert issubclass(UnwritableProgramError, AreniteError)


def test_a_stride_of_32_bits_is_written(tmp_path):
    assert pieces(save(tmp_path, parse(FAR.format(2**31 - 1))))
