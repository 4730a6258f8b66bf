"""One session, one inference at a time: another thread's call is refused, never mixed in."""

import threading

import numpy as np
import pytest

from arenite.runtime import Session, SessionBusyError
from arenite.runtime.session.segments import Segment
from support.running import MANY_KINDS, build, random_feeds
from support.tiny_onnx import parse, save, with_random_weights


@pytest.fixture
def program(tmp_path):
    """A program with many kinds of steps."""
    return build(save(tmp_path, with_random_weights(parse(MANY_KINDS))), tmp_path)


CALLS = {
    "run": lambda session, feeds: session.run(feeds),
    "invoke": lambda session, _feeds: session.invoke(),
    "profile": lambda session, _feeds: session.profile(),
    "reset": lambda session, _feeds: session.reset(),
    "close": lambda session, _feeds: session.close(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_while_another_threads_goes_on_is_refused(program, call):
    with Session(program) as session:
        feeds, others = random_feeds(session, 1), random_feeds(session, 2)
        expected = session.run(feeds)
        begun, may_end = threading.Event(), threading.Event()

        def wait(_first, _last):
            begun.set()
            assert may_end.wait(60)

        plain, found = session._segments, {}
        # A first step that takes as long as the test.
        session._segments = (Segment(range(0), wait), *plain)
        thread = threading.Thread(target=lambda: found.update(session.run(feeds)))
        thread.start()
        try:
            assert begun.wait(60)
            with pytest.raises(SessionBusyError, match="open one session per thread"):
                CALLS[call](session, others)
        finally:
            may_end.set()
            thread.join()
        session._segments = plain
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
        assert session.run(others).keys() == expected.keys()


def test_calls_of_many_threads_are_right_or_refused(program):
    with Session(program) as session:
        feeds = [random_feeds(session, seed) for seed in range(4)]
        expected = [session.run(each) for each in feeds]
        wrong, num_right = [], [0] * len(feeds)

        def work(index):
            for _ in range(100):
                try:
                    found = session.run(feeds[index])
                except SessionBusyError:
                    continue
                num_right[index] += 1
                if any(not np.array_equal(found[name], expected[index][name]) for name in found):
                    wrong.append(index)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(len(feeds))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert sum(num_right) > 0


def test_a_failed_call_leaves_the_session_free(program):
    with Session(program) as session:
        feeds = random_feeds(session)

        def fail(_first, _last):
            raise RuntimeError("on purpose")

        plain = session._segments
        session._segments = (Segment(range(0), fail),)
        for call in (lambda: session.run(feeds), session.invoke, session.profile):
            with pytest.raises(RuntimeError, match="on purpose"):
                call()
        session._segments = plain
        assert session.run(feeds)


def test_sessions_of_one_file_run_in_threads_of_their_own(program):
    with Session(program) as first, Session(program) as second:
        feeds = [random_feeds(first, 1), random_feeds(first, 2)]
        expected = [first.run(each) for each in feeds]
        together = threading.Barrier(2)
        found = [{}, {}]

        def work(index, session):
            for _ in range(20):
                together.wait(60)
                found[index] = session.run(feeds[index])

        threads = [threading.Thread(target=work, args=each) for each in ((0, first), (1, second))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for ours, right in zip(found, expected, strict=True):
            assert ours.keys() == right.keys()
            assert all(np.array_equal(ours[name], right[name]) for name in right)
