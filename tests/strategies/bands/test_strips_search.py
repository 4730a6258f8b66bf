"""What is tried in strips, and when that ends."""

from dataclasses import replace
from functools import partial

import pytest

from arenite.pipeline.targets.compiling import lower_model, rules, runs_by_rows
from arenite.planner.operators.strips import Strips
from arenite.planner.programs.rules import Boundary
from arenite.strategies import BandsLimitError, InBands, StripsSearch, binding_of
from arenite.strategies.bands import strips_search as module
from arenite.strategies.bands.regions import Region, Regions
from arenite.strategies.base import native
from support.banding import COSTS, banded_ways, placed
from support.command_models import EXPANDING
from support.tiny_onnx import parse, save, with_random_weights

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")


@pytest.fixture
def path(tmp_path):
    return save(tmp_path, with_random_weights(parse(EXPANDING)))


@pytest.fixture(autouse=True)
def no_regions_in_strips(monkeypatch):
    monkeypatch.setattr(Regions, "widths", lambda *_: ())


def in_strips(banded):
    return [step for step in InBands.of(banded).base.steps if isinstance(step.operator, Strips)]


def test_the_widest_rows_are_tried_in_strips(path):
    _, ways = banded_ways(path)
    *_, least = ways.frontier()
    (step,) = in_strips(least)
    assert [layer.operands.result.name for layer in step.operator.layers] == ["a", "b", "y"]


def test_what_binds_is_told_in_steps_and_tensors_of_the_model(path):
    _, ways = banded_ways(path)
    *_, least = ways.frontier()
    binding, program = binding_of(least), ways.whole.derivation.program
    assert binding.step in {step.name for step in program.steps}
    assert {held.tensor for held in binding.held} <= program.tensors.keys()


def test_no_more_is_made_again_than_is_allowed(path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_WORK", 1.0)
    _, ways = banded_ways(path)
    assert not any(map(in_strips, ways.frontier()))


def test_a_budget_below_all_is_refused_with_the_least_of_all(path):
    _, ways = banded_ways(path)
    with pytest.raises(BandsLimitError) as caught:
        ways.within(64)
    assert caught.value.least == min(each.height for each in ways.frontier())


def test_the_peak_of_a_walk_counts_what_lies_between_the_layers(path):
    _, ways = banded_ways(path)
    *_, least = ways.frontier()
    (start,) = (
        index
        for index, each in enumerate(InBands.of(least).base.steps)
        if each in in_strips(least)
    )
    strips = InBands.of(least).base.steps[start].operator
    region = Region(start, start + 1)
    found = Regions(InBands.of(least).base, COSTS).walk(region)
    source, result = (InBands.of(least).base.tensors[name] for name in ("i", "y"))
    # All of what it reads, the first row that it makes, and what one strip needs for that.
    assert found.peak == source.size + result.size // 12 + strips.row_scratch(None)
    assert lower_model(path).program.steps[start].outputs == ("a",)


def test_what_the_caller_holds_binds_nothing(path):
    lowered, ways = banded_ways(path)
    program = lowered.program
    outside = StripsSearch(
        program, replace(rules(), boundary=Boundary.EXCLUDE), COSTS, placed,
        is_allowed=partial(runs_by_rows, program),
    )  # fmt: skip
    *_, least = ways.frontier()
    *_, without = outside.frontier()
    assert without.height < least.height
    names = {record.name for record in without.derivation.problem.records}
    assert names.isdisjoint({*program.input_tensors, *program.output_tensors})
