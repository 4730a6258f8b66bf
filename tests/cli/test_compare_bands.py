"""`arenite compare`: what a model takes in bands of rows, beside the strategies."""

import json
import re
from dataclasses import replace

import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.comparison.comparing import Task, compare_model
from arenite.pipeline.report.frontier import map_of
from arenite.strategies import find
from support.banding import banding
from support.command_models import LACKING
from support.tiny_onnx import parse, save, with_random_weights

NETWORK = """(float[1,3,32,32] x) => (y) <float[16,3,3,3] w, float[16,16,3,3] v>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) y = Conv<strides=[2,2], pads=[1,1,1,1]>(b, v) }"""
DENSE = "(float[1,8] x) => (y) { y = Softmax(x) }"
BEST = ("--strategy", "best")


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return save(tmp_path_factory.mktemp("model"), with_random_weights(parse(NETWORK)))


@pytest.fixture(scope="module")
def report(network):
    return compare_model(Task(network, Reading(), (find("best"),), with_bands=True))


def data_of(page):
    found = re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def test_the_frontier_is_that_of_fit_and_begins_with_the_height_of_the_plan(run_json, network):
    (compared,) = run_json("compare", network, *BEST, "--bands")["models"]
    fitted = run_json("fit", network)["frontier"]
    assert compared["frontier"] == [
        {key: value for key, value in point.items() if key != "lower_bound"} for point in fitted
    ]
    assert compared["frontier"][0]["height"] == compared["height"]
    assert compared["frontier"][-1]["height"] < compared["height"]


def test_it_is_found_where_it_is_asked_for_or_a_page_is_written(run, run_json, network, tmp_path):
    pytest.importorskip("bokeh", reason="the extra 'report' is not installed")
    page = tmp_path / "page.html"
    assert run_json("compare", network, *BEST)["models"][0]["frontier"] is None
    for options, there in (((), True), (("--no-bands",), False), (("--quick",), False)):
        run("compare", network, "--strategy", "greedy-by-size", "-o", page, *options)
        (figures,) = data_of(page.read_text())
        assert (figures["frontier"] is not None) is there
        assert (figures["rows"] is not None) is there


def test_the_table_says_the_least_and_its_price(run, network):
    _, said, _ = run("compare", network, *BEST, "--bands")
    assert re.search(
        r"in bands of rows +[\d,]+ B \([\d.]+ KiB\) at the least, [\d.]+ times the time, pred",
        said,
    )


def test_what_gains_nothing_or_is_of_another_target_has_no_frontier(run_json, network, tmp_path):
    dense = save(tmp_path, parse(DENSE))
    assert run_json("compare", dense, *BEST, "--bands")["models"][0]["frontier"] is None
    generic = ("--target", "generic")
    found = run_json("compare", network, *BEST, "--bands", *generic)["models"]
    assert found[0]["frontier"] is None


def test_with_a_budget_bands_stand_beside_the_policies(run_json, network):
    (model,) = run_json(
        "compare", network, "--policies", "60%,1KiB,least", "--bands", "--strategy", "chen-greedy"
    )["models"]
    found = {each["budget"]: each for each in model["results"] if each["policy"] == "bands"}
    assert found["60%"]["peak"] <= 0.6 * model["peak"]
    assert found["least"]["peak"] < found["60%"]["peak"]
    assert found["least"]["extra_time"] >= found["60%"]["extra_time"] >= 0
    assert found["1024"]["peak"] is None
    assert found["1024"]["reached"] == found["least"]["peak"]
    plain = run_json("compare", network, "--policies", "least", "--strategy", "chen-greedy")
    assert {each["policy"] for each in plain["models"][0]["results"]} == {"chen-greedy"}


def test_what_our_runtime_does_not_run_says_so_beside_the_policies(run_json, tmp_path):
    odd = save(tmp_path, parse(LACKING))
    options = ("--policies", "least", "--bands", "--strategy", "chen-greedy")
    *_, bands = run_json("compare", odd, *options)["models"][0]["results"]
    assert (bands["policy"], bands["peak"]) == ("bands", None)
    assert bands["reason"]


def test_a_map_of_rows_holds_every_rectangle_and_the_load(network):
    *_, least = banding(network)[1].frontier()
    rows, problem = map_of(least), least.derivation.problem
    assert (rows.height, rows.turns) == (least.height, len(least.derivation.program.steps))
    assert len(rows.starts) == sum(len(record.stairs) for record in problem.records)
    assert rows.tops.max() == least.height
    assert rows.loads.max() == problem.lower_bound
    assert {"x", "y"} <= set(rows.tensors)
    assert set(rows.operators) == {"graph input", "Conv2D"}
    assert rows.num_bytes < 30 * len(rows.starts) + 20 * len(rows.times)


def page_of(report, count):
    """Return a page of copies of a report, under names of their own."""
    from arenite.pipeline.report.page import as_page

    reports = [replace(report, model=f"{number}.onnx") for number in range(count)]
    return as_page(reports, ("compare",))


def test_fifty_models_make_a_page_below_five_megabytes(report):
    pytest.importorskip("bokeh", reason="the extra 'report' is not installed")
    one, three = page_of(report, 1), page_of(report, 3)
    assert all(each["frontier"] and each["rows"] for each in data_of(three))
    a_model = (len(three) - len(one)) / 2
    assert len(one) + 49 * a_model < 5 << 20


def test_maps_of_rows_are_drawn_as_far_as_there_is_room(report, monkeypatch):
    pytest.importorskip("bokeh", reason="the extra 'report' is not installed")
    room = 2 * report.frontier.least.num_bytes
    monkeypatch.setattr("arenite.pipeline.report.page._ROWS_BUDGET", room)
    page = page_of(report, 3)
    assert [each["rows"] is not None for each in data_of(page)] == [True, True, False]
    assert page.count("Its map is left out") == 1
