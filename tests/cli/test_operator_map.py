"""The map of rows in a terminal, by operator."""

from rich.console import Console

from arenite.cli.render.operator_map import draw
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from support.tiny_onnx import parse, save, with_random_weights

NETWORK = """(float[1,3,32,32] x) => (y) <float[16,3,3,3] w, float[16,16,3,3] v>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) y = Conv<strides=[2,2], pads=[1,1,1,1]>(b, v) }"""
COUNT = 16
ROWS = tuple(UsageRecord(f"row {row}", 16, row, row + 2) for row in range(COUNT))
PROBLEM = Problem(ROWS)
PLAN = Plan.of(PROBLEM, tuple(16 * (row % 2) for row in range(COUNT)), "by hand")


def printed(labels, *, colour):
    console = Console(width=80, record=True, force_terminal=colour, color_system="truecolor")
    with console.capture() as captured:
        console.print(draw(PROBLEM, PLAN, labels, 80, 4, colour=colour))
    return captured.get()


def test_rows_of_one_operator_have_one_letter():
    said = printed(["Conv2D"] * 12 + ["Pool2D"] * 4, colour=False)
    letters = {letter for letter in "ABCD" if f"{letter}{letter}" in said}
    assert letters == {"A", "B"}
    assert "A   Conv2D" in said
    assert said.index("Conv2D") < said.index("Pool2D")


def test_rows_of_one_operator_have_one_colour():
    first, second = "78;121;167", "242;142;43"
    one = printed(["Conv2D"] * COUNT, colour=True)
    assert first in one
    assert second not in one
    assert second in printed(["Conv2D"] * 8 + ["Pool2D"] * 8, colour=True)


def test_operators_beyond_the_colours_are_others():
    said = printed([f"Operator{row}" for row in range(COUNT)], colour=False)
    assert "N   others" in said
    assert said.count("Operator") == 13


def test_fit_draws_it_where_it_is_asked_for(run, misused, tmp_path):
    network = save(tmp_path, with_random_weights(parse(NETWORK)))
    for options in ((), ("--budget", "60%")):
        assert "of the map" not in run("fit", network, *options)[1]
        said = run("fit", network, *options, "--map")[1]
        assert "A   Conv2D" in said
        assert "graph input" in said
    assert "exclude each other" in misused("fit", network, "--map", "--json")
