"""What a notebook shows of results, and how they print."""

import shutil
from pathlib import Path
from xml.etree import ElementTree

import onnx
import pytest

import arenite

SQUEEZENET = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
HOSTILE = "<script>alert(1)&.onnx"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return Path(shutil.copyfile(SQUEEZENET, tmp_path_factory.mktemp("notebook") / HOSTILE))


@pytest.fixture(scope="module")
def frontier(model):
    return arenite.fit_frontier(model)


def drawn(result):
    """Return the parts of a page fragment, which must be well formed and carry no script."""
    shown = result._repr_html_()
    assert "<script" not in shown
    return ElementTree.fromstring(f"<body>{shown}</body>")


def pictures(page):
    return page.findall("{http://www.w3.org/2000/svg}svg")


def test_a_plan_shows_its_memory_map_and_prints_its_height(model):
    plan = arenite.plan(model)
    assert len(pictures(drawn(plan))) == 1
    assert f"{plan.height:,} B" in str(plan)
    assert plan.lower_bound <= plan.height
    assert max(plan.offsets.values()) < plan.height


def test_a_plan_of_records_alone_has_a_map_too(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("id,lower,upper,size\na,0,2,32\nb,1,3,64\n")
    assert len(pictures(drawn(arenite.plan(path)))) == 1


def test_a_frontier_shows_a_point_and_a_row_for_each_program(frontier):
    page = drawn(frontier)
    (picture,) = pictures(page)
    assert len(picture.findall("{http://www.w3.org/2000/svg}circle")) == len(frontier) > 1
    assert len(page.findall(".//tbody/tr")) == len(frontier)
    assert len(str(frontier).splitlines()) == len(frontier)
    assert len(pictures(drawn(frontier[-1]))) == 1


def test_a_model_without_bands_has_a_frontier_of_one_point(tmp_path):
    from support.tiny_onnx import parse, save

    path = save(tmp_path, parse("(float[1,8] x) => (y) { y = Abs(x) }"))
    frontier = arenite.fit_frontier(path)
    assert len(frontier) == 1
    assert len(pictures(drawn(frontier))) == 1


def test_a_comparison_shows_a_row_a_model_and_names_failures(model, tmp_path):
    found = arenite.compare(
        [model, tmp_path / "absent.onnx"], strategies=["greedy-by-size"], bands=False
    )
    assert len(drawn(found).findall(".//tbody/tr")) == len(found.reports) == 1
    assert "absent.onnx" in str(found)
    found.to_csv(tmp_path / "table.csv")
    assert "greedy-by-size" in (tmp_path / "table.csv").read_text()


def test_options_that_exclude_each_other_are_refused(model):
    with pytest.raises(arenite.AreniteError, match="fit_frontier"):
        arenite.fit(model)
    with pytest.raises(AttributeError, match="nothing"):
        arenite.nothing  # noqa: B018


def test_every_public_name_is_there():
    assert set(arenite.__all__) <= set(dir(arenite))
    for name in arenite.__all__:
        assert getattr(arenite, name).__doc__
