"""What the page says, before it is marked up."""

import dataclasses

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.comparison.comparing import Task, compare_model
from arenite.pipeline.report.frontier import Frontier, Point
from arenite.pipeline.report.frontier_words import remark
from arenite.pipeline.report.model import PageModel
from arenite.pipeline.report.results import FailedModel, PeerResult
from arenite.pipeline.report.row_map import RowMap
from arenite.pipeline.report.summary import offered
from arenite.pipeline.report.words import page_model
from arenite.strategies import find
from support.tiny_onnx import parse, save

NONE = np.zeros(0, np.uint8)
FRONTIER = Frontier(
    (Point(512, 1.0, 3, 0.0), Point(256, 1.0, 9, 0.25)),
    RowMap(256, 9, NONE, NONE, NONE, NONE, NONE, NONE, (), (), {}, NONE, NONE, None),
    "It binds.",
    "costs of a board, stated",
)
COLOURS = ("#111111", "#222222")
COMMAND = ("compare", "a b.onnx")
CHAIN = "(float[1,64] x) => (y) <float[64,64] w> { h = MatMul(x, w) r = Relu(h) y = Exp(r) }"


@pytest.fixture
def report(tmp_path):
    model = save(tmp_path, parse(CHAIN))
    strategies = tuple(map(find, ("no-reuse", "greedy-by-size")))
    reading = Reading(target="generic", order_name="given", aliases=())
    return compare_model(Task(model, reading, strategies))


def words(*compared, mapped=()):
    choices = [report.results for report in compared if not isinstance(report, FailedModel)]
    return page_model(compared, choices, COMMAND, {}, COLOURS, mapped)


def test_one_model_is_the_headline(report):
    page = words(report)
    assert isinstance(page, PageModel)
    assert page.title == "Arenite: tiny.onnx"
    assert page.overview is None
    headline = page.headline
    assert (headline.subject, headline.before) == ("tiny.onnx", "needs")
    assert (headline.figure, headline.after) == ("512 B", ", 50.0 % less than without reuse")
    assert [answer.answer for answer in headline.answers][:2] == ["greedy-by-size", "512 B"]
    (section,) = page.sections
    assert (section.name, section.figures, section.advice) == ("Memory map", (), "")
    assert section.figure.loads[0] == (COLOURS[0], "working set: bytes that the step touches")


def test_of_strategies_that_are_as_low_the_quickest_leads(report):
    slow, quick = (
        dataclasses.replace(report.results[1], strategy=name, seconds=seconds)
        for name, seconds in (("slow", 2.0), ("quick", 0.5))
    )
    equals = dataclasses.replace(report, results=(report.results[0], slow, quick))
    page = words(equals)
    first = page.headline.answers[0]
    assert first.answer == "quick"
    assert first.more.endswith("It is the quickest of 2 that are as low.")
    (section,) = page.sections
    assert [row.strategy for row in section.strategies] == ["quick", "slow", "no-reuse"]
    assert [each.strategy for each in offered(equals, 1000)] == ["quick", "slow", "no-reuse"]
    two = words(equals, dataclasses.replace(equals, model="other"))
    assert two.overview.models[0].strategy.text == "quick"
    assert two.overview.standings[0].strategy == "quick"


def test_a_frontier_is_an_answer_and_stands_before_the_map(report):
    page = words(dataclasses.replace(report, frontier=FRONTIER), mapped={report.model})
    answer = page.headline.answers[2]
    assert (answer.question, answer.answer) == ("In bands of rows", "256 B")
    assert answer.more == "at the least, 50.0 % of the whole, at 1.25 times the time, predicted."
    (section,) = page.sections
    assert section.name == "Memory"
    assert [row[0].text for row in section.trade.rows] == ["512 B", "256 B"]
    assert [row[-1].text for row in section.trade.rows] == ["1.00", "1.25"]
    assert section.trade.about == "256 B, 9 turns"
    assert (section.trade.binding, section.trade.has_map) == ("It binds.", True)
    assert "bands of rows: nothing is computed twice" in section.trade.remark


def test_what_is_computed_twice_is_said():
    low, lower = FRONTIER.points
    again = dataclasses.replace(lower, multiply_adds_ratio=1.037)
    said = remark(dataclasses.replace(FRONTIER, points=(low, again)))
    assert "at most 3.7 % is computed twice" in said


def test_several_models_have_a_column_of_bands_and_those_that_gain_nothing_an_empty_cell(report):
    other = dataclasses.replace(report, model="other", frontier=FRONTIER)
    page = words(report, other)
    assert page.overview.has_bands
    assert [row.bands.text for row in page.overview.models] == ["", "256 B"]
    assert (
        page.headline.answers[2].more == "of the whole, the median of the 1 model that this helps."
    )
    assert [section.trade is None for section in page.sections] == [True, False]
    assert page.sections[1].trade.binding.startswith("Its map is left out")


def test_several_models_have_an_overview_and_figures_each(report):
    page = words(report, dataclasses.replace(report, model="other"))
    assert page.title == "Arenite: 2 models"
    assert page.headline.before == "2 models need"
    assert page.headline.figure == "50.0 % less"
    row = page.overview.models[0]
    assert (row.bar.share, row.bar.bound, row.arena.text) == ("50.00", "50.00", "512 B")
    assert row.above.text == "optimal"
    best = page.overview.standings[0]
    assert (best.strategy, best.wins) == ("greedy-by-size", True)
    assert [cell.text for cell in best.figures[-2:]] == ["0", "0"]
    assert [cell.heat for cell in page.overview.standings[1].figures[-2:]] == [4, 4]
    assert page.sections[0].figures[0] == ("arena", "512 B", "512 B")


def test_strategies_are_listed_the_lowest_first_and_peers_last(report):
    peers = (PeerResult("TFLM", 600), PeerResult("LiteRT", None, "absent"))
    (section,) = words(dataclasses.replace(report, peers=peers)).sections
    assert [row.strategy for row in section.strategies] == [
        "greedy-by-size", "no-reuse", "TFLM", "LiteRT",
    ]  # fmt: skip
    assert [row.wins for row in section.strategies] == [True, False, False, False]
    assert [row.figures[0].text for row in section.strategies] == ["512", "1,024", "600", "-"]
    (remark,) = section.remarks
    assert remark.endswith("LiteRT: absent.")


def test_failures_are_stated_and_nothing_else_where_nothing_is_planned():
    page = words(FailedModel("m\x1b.onnx", "m: damaged"))
    assert page.headline is None
    assert page.failures[0].model == "m\\x1b.onnx"
    assert page.sections == ()


def test_how_it_was_made_can_be_repeated(report):
    page = words(report)
    assert page.command == "arenite compare 'a b.onnx'"
    assert page.made_with.startswith("Python ")
    assert page.made_with.endswith("Every plan was verified. Times are of one run each.")
    assert page.digests == (("tiny.onnx", report.source.digest),)
