"""The picture of both memory maps."""

import re
from xml.etree import ElementTree

import pytest

from arenite.pipeline.report.frontier import map_of
from arenite.pipeline.report.row_svg import as_svg
from support.banding import banding
from support.tiny_onnx import parse, save, with_random_weights

NETWORK = """(float[1,3,32,32] x) => (y) <float[16,3,3,3] w, float[16,16,3,3] v>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) y = Conv<strides=[2,2], pads=[1,1,1,1]>(b, v) }"""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return save(tmp_path_factory.mktemp("model"), with_random_weights(parse(NETWORK)))


@pytest.fixture(scope="module")
def maps(network):
    frontier = list(banding(network)[1].frontier())
    return [("Whole", map_of(frontier[0])), ("Least", map_of(frontier[-1]))]


def rectangles(panel):
    """Return the rectangles of a map, in tenths of a pixel: left, bottom, width, height."""
    text = "".join(path.get("d") for path in panel.iter(f"{SVG}path"))
    found = re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-?\d+z", text)
    return [tuple(map(int, each)) for each in found]


def test_both_maps_are_to_one_scale(maps):
    panels = list(ElementTree.fromstring(as_svg("a", maps)).iter(f"{SVG}g"))
    assert len(panels) == 2
    for panel, (_, rows) in zip(panels, maps, strict=True):
        drawn = rectangles(panel)
        assert len(drawn) == len(rows.starts)
        highest = max(bottom + height for _, bottom, _, height in drawn)
        assert highest == pytest.approx(2500 * rows.height / maps[0][1].height, abs=1)
        assert max(left + width for left, _, width, _ in drawn) == 4200


def test_names_are_text_and_never_markup(maps):
    picture = ElementTree.fromstring(as_svg("</title><script>a</script>", maps))
    assert picture.find(f"{SVG}title").text.startswith("</title><script>a</script>: Whole in")
    assert list(picture.iter(f"{SVG}script")) == []


def test_fit_writes_it_and_the_same_bytes_again(run, network, tmp_path):
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    for path in (first, second):
        assert run("fit", network, "-o", path)[0] == 0
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) < 40_000
    said = " ".join(ElementTree.fromstring(first.read_text()).itertext())
    assert "Whole" in said
    assert "Least" in said
    assert "graph input" in said
