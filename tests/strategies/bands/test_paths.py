"""Ways through a program: none above the peak, and stopped when asked."""

import pytest

from arenite.pipeline.targets.compiling import lower_model
from arenite.strategies.bands.paths import (
    Edges,
    SearchStoppedError,
    least_peak,
    quickest,
    smoothest,
)
from arenite.strategies.bands.regions import Regions
from arenite.strategies.base import native
from support.banding import COSTS
from support.tiny_onnx import parse, save, with_random_weights

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")

CHAIN = """(float[1,2,16,8] x) => (y) <float[8,2,3,3] w, float[2,8,3,3] v>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = Conv<pads=[1,1,1,1]>(a, v) y = Abs(b) }"""
"""Its widest tensor `a` takes 4096 B, four times what is around it."""


def edges_of(folder, should_stop=lambda: False):
    program = lower_model(save(folder, with_random_weights(parse(CHAIN)))).program
    regions = Regions(program, COSTS)
    sizes = {name: tensor.size for name, tensor in program.tensors.items()}
    loads = tuple(
        sizes[step.outputs[0]]
        + max(sizes[name] for name in step.inputs if name in ("x", "a", "b"))
        for step in program.steps
    )
    return Edges(regions, loads, should_stop)


def test_what_fits_runs_whole(tmp_path):
    edges = edges_of(tmp_path)
    path = quickest(edges, max(edges.loads))
    assert [edge.region for edge in path] == [None] * len(edges.loads)


def test_a_way_below_the_load_stays_within_its_peak(tmp_path):
    edges = edges_of(tmp_path)
    least = least_peak(edges)
    assert least < max(edges.loads) / 2
    for peak in range(least, max(edges.loads), 256):
        for path in (quickest(edges, peak), smoothest(edges, peak)):
            assert max(edge.peak for edge in path) <= peak
            assert path[-1].stop == len(edges.loads)


def test_no_way_is_below_the_least_peak_but_for_its_precision(tmp_path):
    edges = edges_of(tmp_path)
    least = least_peak(edges)
    assert quickest(edges, int(least * 0.99)) is None


def test_less_memory_takes_more_time(tmp_path):
    edges = edges_of(tmp_path)
    peaks = sorted([least_peak(edges), 3000, max(edges.loads)])
    seconds = [sum(edge.seconds for edge in quickest(edges, peak)) for peak in peaks]
    assert seconds == sorted(seconds, reverse=True)


def test_an_edge_that_was_walked_is_not_walked_again(tmp_path, monkeypatch):
    edges = edges_of(tmp_path)
    least = least_peak(edges)
    first = quickest(edges, least)
    monkeypatch.setattr(edges.regions, "walk", lambda *_: pytest.fail("walked again"))
    assert quickest(edges, least) == first


def test_a_search_that_is_to_stop_says_so(tmp_path):
    edges = edges_of(tmp_path, should_stop=lambda: True)
    with pytest.raises(SearchStoppedError):
        least_peak(edges)
