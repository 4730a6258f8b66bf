"""Orders that are searched while somebody waits."""

import os
import signal
import threading
import time

from arenite.cli.console.observer import watched
from arenite.pipeline.base.ordering import order_finder
from arenite.planner.programs.rules import Rules
from support.tiny_graphs import wide_graph

BYTES = Rules(alignment=1)


def names_of(graph):
    return sorted(step.name for step in graph.steps)


def test_the_given_order_needs_no_search():
    assert order_finder("given") is None


def test_a_time_limit_ends_the_search_and_says_that_nothing_is_proved(capsys):
    graph = wide_graph(60)
    begin = time.process_time()
    order = order_finder("optimal", watched(0.3))(graph, BYTES)
    assert time.process_time() - begin < 1
    assert sorted(order.steps) == names_of(graph)
    told = f"order optimal: stopped; its peak of {order.peak} B is not proved the least"
    assert capsys.readouterr().err == f"note: {told}\n"


def test_a_search_that_ends_in_time_says_nothing(capsys):
    graph = wide_graph(3)
    assert order_finder("optimal", watched(60))(graph, BYTES).optimal
    assert capsys.readouterr().err == ""


def test_ctrl_c_keeps_the_best_order_so_far(capsys):
    graph = wide_graph(60)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    order = order_finder("optimal", watched())(graph, BYTES)
    assert sorted(order.steps) == names_of(graph)
    told = capsys.readouterr().err
    assert "the best order so far is kept" in told
    assert "not proved" in told
