"""What a process holds does not grow with its runs, nor with the sessions that it opens."""

from dataclasses import replace

import pytest

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")

from bench.contests.memory import (
    MOST_GROWTH,
    Holding,
    holdings,
    open_often,
    run_often,
    soak_programs,
)
from bench.harness.measuring import in_fresh_process


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return soak_programs(tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize(
    ("often", "threads", "count"), [(run_often, 2, 500), (open_often, 1, 300), (open_often, 2, 50)]
)
def test_nothing_grows_over_some_hundred_times(programs, often, threads, count):
    found = in_fresh_process(often, programs["streamed weights"], threads, count)
    assert not found[-1].has_grown(found[0]), found


def test_the_program_streams(programs):
    assert programs["streamed weights"].stat().st_size > 0
    assert programs["streamed weights"].read_bytes() != programs["all weights"].read_bytes()


HELD = Holding(10 << 20, 90, 8, 2)


@pytest.mark.parametrize(
    "more",
    [{"resident": HELD.resident + MOST_GROWTH + 1}, {"mappings": 93}, {"files": 9},
     {"threads": 3}],
)  # fmt: skip
def test_what_grows_is_told(more):
    assert replace(HELD, **more).has_grown(HELD)
    assert not HELD.has_grown(replace(HELD, **more))


def test_a_leak_is_noticed():
    kept = []
    found = holdings(lambda: kept.append(bytearray(b"1" * (1 << 20))), 100)
    assert len(found) == 10
    assert found[-1].has_grown(found[0])
