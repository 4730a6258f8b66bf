"""Tensors that a lane of their own spills to a file and fetches back."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from arenite.planner.programs.costs import LEAST
from arenite.runtime import ResourceError, Session, SessionForkedError
from arenite.strategies import find_policy
from support.forked import in_child
from support.trading import assembled, lowered_step, pieces_of, some_feeds, traded


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """A training step that spills what it can."""
    lowered = lowered_step(tmp_path_factory.mktemp("step"))
    return pieces_of(assembled(lowered, traded(lowered, find_policy("offload-prefetch"), LEAST)))


def outputs(session):
    found = session.run(some_feeds(session.inputs))
    return {name: array.tobytes() for name, array in found.items()}


def spilled(session):
    return next(memory for memory in session.memories if memory.spilled)


def test_a_buffer_of_the_caller_stands_in_for_the_file(pieces):
    with Session.of_pieces(pieces, "file") as session:
        memory, expected = spilled(session), outputs(session)
        held = session.memory().memories
    whole = np.zeros(memory.size + 128 + memory.alignment, np.uint8)
    start = -whole.ctypes.data % memory.alignment
    buffer = whole[start : start + memory.size + 128]
    with Session.of_pieces(pieces, "buffer", buffers={memory.name: buffer}) as session:
        assert outputs(session) == expected
        assert session.memory().memories == held + memory.size + 128
    assert buffer.any()


def test_what_is_spilled_is_no_memory_of_the_session(pieces):
    with Session.of_pieces(pieces, "file") as session:
        assert session.memory().memories == session.arena_bytes + 128
        assert spilled(session).size > 0


def descriptors(folder):
    """Return the open files of this process that lie in a folder, by what they are called."""
    found = {}
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[str(each.readlink())] = int(each.name)
    return [number for name, number in found.items() if name.startswith(f"{folder}/")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_the_file_is_gone_with_the_session(pieces, folder):
    with Session.of_pieces(pieces, "file") as session:
        outputs(session)
        assert len(descriptors(folder)) == 1
        assert not list(folder.iterdir())  # it has no name that could be left behind
    assert not descriptors(folder)


def test_without_a_folder_for_the_file_there_is_no_session(pieces, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with pytest.raises(ResourceError, match=r"no temporary file of .* TMPDIR names another"):
        Session.of_pieces(pieces, "file")


def test_a_file_that_fails_in_a_run_is_an_error_and_the_session_goes_on(pieces, folder):
    with Session.of_pieces(pieces, "file") as session:
        expected = outputs(session)
        (number,) = descriptors(folder)
        kept = os.dup(number)
        os.dup2(os.open("/dev/null", os.O_RDONLY), number)
        with pytest.raises(ResourceError, match="could not be written or read"):
            session.invoke()
        os.dup2(kept, number)
        session.reset()
        assert outputs(session) == expected


def test_a_child_is_refused_and_may_close_it(pieces):
    with Session.of_pieces(pieces, "file") as session:
        expected = outputs(session)

        def used():
            with pytest.raises(SessionForkedError, match="in the child"):
                session.invoke()
            session.close()

        assert in_child(used) == 0
        session.reset()
        assert outputs(session) == expected


def test_a_signal_is_for_the_thread_that_runs(pieces):
    with Session.of_pieces(pieces, "file") as session:
        heard = []
        before = signal.signal(signal.SIGALRM, lambda *_: heard.append(threading.get_ident()))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                session.invoke()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert heard


def test_a_profile_has_the_moves_and_the_waits(pieces):
    with Session.of_pieces(pieces, "file") as session:
        outputs(session)
        steps = {step.operator: step for step in session.profile()}
    assert {"Spill", "Fetch", "Wait"} <= steps.keys()
    assert steps["Spill"].nanoseconds > 0
    assert steps["Fetch"].nanoseconds > 0


def test_sessions_in_several_threads_give_the_same_bits(pieces):
    def run(threads):
        with Session.of_pieces(pieces, "file", threads=threads) as session:
            for _ in range(2):
                session.reset()
                found.append(outputs(session))

    found = []
    workers = [threading.Thread(target=run, args=(count,)) for count in (1, 1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 6
    assert all(each == found[0] for each in found)


class StopError(Exception):
    """Raised amid a run."""


def test_a_run_that_ends_early_leaves_nothing_moving(pieces):
    """As where a step of another runtime fails, or the user interrupts."""

    def fail():
        raise StopError

    with Session.of_pieces(pieces, "file") as session:
        expected = outputs(session)
        segments = session._segments
        for count in range(1, len(segments), 3):
            session.reset()
            session._segments = (*segments[:count], fail)
            with pytest.raises(StopError):
                session.invoke()
            session._segments = segments
            session.reset()
            assert outputs(session) == expected
