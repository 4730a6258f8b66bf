"""A program file that is written over in place while sessions of it are open."""

import os

import numpy as np
import pytest

from arenite.runtime import Session
from support.running import MANY_KINDS, build, random_feeds
from support.tiny_onnx import parse, save, with_random_weights


@pytest.fixture
def program(tmp_path):
    return build(save(tmp_path, with_random_weights(parse(MANY_KINDS))), tmp_path)


def test_what_was_checked_is_not_read_from_the_file_again(program):
    """Every byte of the program changes; the weights, which are in the file, stay."""
    first = program.read_bytes()
    end = 32 + int.from_bytes(first[16:24], "little")
    with Session(program) as session:
        feeds = random_feeds(session)
        expected = session.run(feeds)
        held = session._native.program()
        with program.open("r+b") as stream:
            stream.write(os.urandom(end))
        assert session._native.program() == held
        session.reset()
        found = session.run(feeds)
        assert {n: a.tobytes() for n, a in found.items()} == {
            n: a.tobytes() for n, a in expected.items()
        }
        assert [port.name for port in session.outputs] == list(expected)
        assert session.profile()


def test_weights_are_those_that_the_file_has(tmp_path):
    """So sessions share them; a file is replaced by renaming, which leaves open ones alone."""
    model = "(float[4,512] x) => (y) <float[512] w> {y = Mul(x, w)}"
    program = build(save(tmp_path, with_random_weights(parse(model))), tmp_path)
    x = np.ones((4, 512), np.float32)
    with Session(program) as session:
        before = session.run({"x": x})["y"]
        other = tmp_path / "other.arena"
        other.write_bytes(bytes(program.stat().st_size))
        other.replace(program)
        np.testing.assert_array_equal(session.run({"x": x})["y"], before)
