"""Graphs so wide that a search of all orders would take forever."""

import ctypes
import re
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from arenite.planner.programs.ordering import AnytimeOrder
from arenite.planner.programs.program import Program
from arenite.planner.programs.rules import Rules
from arenite.strategies import ORDERS
from arenite.strategies.order.searches import Beam, OptimalOrder
from support.tiny_graphs import wide_graph

BYTES = Rules(alignment=1)
ANYTIME = [
    pytest.param(strategy, id=strategy.name)
    for strategy in ORDERS
    if isinstance(strategy, AnytimeOrder)
]


def is_topological(graph: Program, names: tuple[str, ...]) -> bool:
    return sorted(names) == sorted(operator.name for operator in graph.steps) and bool(
        graph.reordered(names)
    )


@pytest.mark.parametrize("strategy", ANYTIME)
@pytest.mark.parametrize("num_branches", [40, 150])
def test_a_stop_after_a_fifth_of_a_second_is_obeyed_within_another(strategy, num_branches):
    graph = wide_graph(num_branches)
    strategy = replace(strategy, width=100_000) if strategy.name == "beam" else strategy
    asked = []
    begin = time.process_time()

    def stop() -> bool:
        asked.append(time.process_time() - begin)
        return asked[-1] >= 0.2

    order = strategy.search(graph, BYTES, stop)
    spent = time.process_time() - begin
    assert is_topological(graph, order.steps)
    if strategy.name != "best":  # may be done before
        assert asked[-1] >= 0.2
        assert not order.optimal
    assert spent < max(0.2, asked[-1]) + 0.2
    between = [after - before for before, after in pairwise(asked)]
    assert max(between, default=0) < 0.2


@pytest.mark.parametrize("strategy", ANYTIME)
def test_an_interrupt_while_asking_ends_the_search(strategy):
    def interrupt() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        strategy.search(wide_graph(40), BYTES, interrupt)


def test_a_stopped_search_is_no_higher_than_the_given_order():
    graph = wide_graph(40)
    given, *_ = (strategy for strategy in ORDERS if strategy.name == "given")
    stopped = OptimalOrder().search(graph, BYTES, lambda: True)
    assert stopped.peak <= given(graph, BYTES).peak


def test_the_proof_is_given_up_when_the_memory_for_it_runs_out():
    # Sets of 161 operators take some 70 B each: 4 MB hold fewer than 100,000 of them.
    graph = wide_graph(40)
    search = OptimalOrder(max_states=1_000_000_000, widened=(), max_bytes=4_000_000)
    order = search(graph, BYTES)
    assert is_topological(graph, order.steps)
    assert not order.optimal
    assert search(graph, BYTES) == order


def test_more_memory_is_what_a_proof_may_need():
    graph = wide_graph(6)
    scarce = OptimalOrder(width=1, widened=(), max_bytes=1_000)
    assert not scarce(graph, BYTES).optimal
    assert replace(scarce, max_bytes=1_000_000)(graph, BYTES).optimal


@pytest.mark.parametrize(
    "search",
    [OptimalOrder(width=1, widened=(), max_states=1 << 40), Beam(width=1 << 30)],
    ids=["exact", "beam"],
)
def test_the_tables_take_no_more_than_they_may(search):
    graph = wide_graph(60)

    peak = Path("/proc/self/clear_refs")
    if not peak.exists():
        pytest.skip("only Linux lets a process forget its peak")

    def grown(max_bytes: int, *, seconds: float = 2, enough: int = 1 << 40) -> int:
        ctypes.CDLL(None).malloc_trim(0)  # what tests before this one freed is resident still
        peak.write_text("5")
        before = peak_of_this_process()
        end = time.process_time() + seconds
        replace(search, max_bytes=max_bytes).search(
            graph,
            BYTES,
            lambda: time.process_time() >= end or peak_of_this_process() - before > enough,
        )
        return peak_of_this_process() - before

    grown(1_000_000)
    assert grown(16 << 20) < 24 << 20
    if isinstance(search, OptimalOrder):  # so the limit was what held it back
        assert grown(128 << 20, seconds=30, enough=24 << 20) > 24 << 20


def peak_of_this_process() -> int:
    """Return the most bytes that were resident since the peak was forgotten."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) * 1024


def test_a_beam_without_room_keeps_fewer_sets_and_claims_nothing():
    graph = wide_graph(40)
    narrow = Beam(max_bytes=1)(graph, BYTES)
    assert narrow.peak == Beam(width=1)(graph, BYTES).peak
    assert not narrow.optimal
