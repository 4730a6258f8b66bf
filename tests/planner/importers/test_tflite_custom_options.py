"""Options of custom operators: numbers under their names, and nothing of bytes that are others."""

import random

import pytest
from flatbuffers import flexbuffers

from arenite.planner.importers.tflite.options import custom_options
from support.tflite_operator import flexbuffer


def test_numbers_and_lists_of_integers_are_read_under_their_names():
    numbers = {"count": 3, "share": 0.5, "every": True}
    lists = {"places": [4, 1, 4], "shares": [0.5], "names": ["x"], "many": [7] * 4097}
    data = flexbuffer({**numbers, **lists, "name": "x"})
    assert custom_options(data) == {**numbers, "places": (4, 1, 4)}


def test_a_structure_is_read_by_the_name_of_its_operator():
    data = bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0])
    names = "Padding", "StrideW", "StrideH"
    for end, values in ((12, (1, 2, 3)), (7, (1, 2, 0)), (0, (0, 0, 0))):
        found = custom_options(data[:end], "Convolution2DTransposeBias")
        assert found == dict(zip(names, values, strict=True))


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"hello, world", bytes(flexbuffers.Dumps([1, 2])), b"\xff" * 40]
)
def test_bytes_that_are_no_map_have_no_options(data):
    assert custom_options(data) == {}


def test_damaged_bytes_have_fewer_options_or_others_but_raise_nothing():
    valid = bytes(flexbuffers.Dumps({f"option {i}": i / 3 for i in range(9)}))
    generator = random.Random(5)
    for _ in range(2000):
        data = bytearray(valid)
        for _ in range(generator.choice((1, 2, 6))):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        assert len(custom_options(bytes(data[: generator.randrange(len(data) + 1)]))) <= 64


def test_more_options_than_any_operator_has_are_none():
    assert custom_options(bytes(flexbuffers.Dumps({str(i): i for i in range(65)}))) == {}
