"""A session in a child of the process that opened it: an answer, never a wait without end."""

import os

import numpy as np
import pytest

from arenite.runtime import Session, SessionForkedError, _core
from support.forked import in_child
from support.running import build
from support.tiny_onnx import parse, save, with_random_weights

LARGE = "(float[1,16,64,64] x) => (y) <float[16,16,3,3] w> {y = Conv<pads=[1,1,1,1]>(x, w)}"
FEEDS = {"x": np.ones((1, 16, 64, 64), np.float32)}

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


@pytest.fixture
def program(tmp_path):
    return build(save(tmp_path, with_random_weights(parse(LARGE))), tmp_path)


@pytest.mark.parametrize("call", ["run", "invoke", "profile"])
def test_a_session_with_threads_is_refused_in_a_child(program, call):
    session = Session(program, threads=2)
    session.run(FEEDS)

    def used():
        with pytest.raises(SessionForkedError, match="in the child"):
            session.run(FEEDS) if call == "run" else getattr(session, call)()

    assert in_child(used) == 0
    session.run(FEEDS)


def test_the_core_refuses_it_too(program):
    """For who calls the core from elsewhere."""
    session = Session(program, threads=2)
    native = session._native

    def used():
        with pytest.raises(_core.ForkedError, match=r"cannot be used after fork\(\)"):
            native.run(0, native.num_steps)

    assert in_child(used) == 0


def test_a_session_with_threads_is_closed_in_a_child(program):
    session = Session(program, threads=2)
    session.run(FEEDS)
    assert in_child(session.close) == 0
    session.run(FEEDS)


def test_sessions_of_one_thread_and_those_of_the_child_run_there(program):
    inherited = Session(program)
    expected = inherited.run(FEEDS)["y"]

    def used():
        with Session(program, threads=2) as own:
            for session in (inherited, own):
                assert session.run(FEEDS)["y"].tobytes() == expected.tobytes()

    assert in_child(used) == 0
