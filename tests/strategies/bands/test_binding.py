"""What binds is told in steps and tensors of the model, not of bands."""

from dataclasses import replace

import pytest

from arenite.pipeline.targets.compiling import rules
from arenite.planner.errors import UnmetBudgetError
from arenite.planner.rewrites.derivation import derive
from arenite.strategies import BandsLimitError, BandsSearch, InBands, binding_of, owners_of
from support.banding import COSTS, banding, placed
from support.tiny_onnx import parse, save, with_random_weights

NETWORK = """(float[1,3,16,16] x) => (y) <float[8,3,3,3] w, float[8,8,3,3] v, float[2,8] f>
{ a = Conv<pads=[1,1,1,1]>(x, w) b = Conv<strides=[2,2], pads=[1,1,1,1]>(a, v)
  i = GlobalAveragePool(b) j = Flatten(i) y = Gemm<transB=1>(j, f) }"""


@pytest.fixture
def ways(tmp_path):
    return banding(save(tmp_path, with_random_weights(parse(NETWORK))))[1]


def test_every_piece_belongs_to_a_tensor_of_the_model(ways):
    *_, least = ways.frontier()
    assert InBands.of(least).regions
    program = least.derivation.program
    owners = owners_of(program)
    assert set(owners.values()) <= ways.whole.derivation.program.tensors.keys()
    pieces = [name for name in program.tensors if "/rows " in name or "/sums" in name]
    assert pieces
    assert all(piece in owners for piece in pieces)


def test_what_binds_adds_up_and_is_named_as_in_the_model(ways):
    *_, least = ways.frontier()
    binding = binding_of(least)
    assert sum(each.size for each in binding.held) == binding.load
    assert binding.load == least.plan.lower_bound
    assert binding.step in {step.name for step in ways.whole.derivation.program.steps}
    assert binding.held[0].called == "graph input 'x'"


def test_an_arena_larger_than_what_is_live_names_the_gaps(tmp_path):
    weights = "float[1,1,3,3] a, float[1,1,3,3] b, float[2,1,3,3] c, float[2,2,3,3] d"
    network = f"""(float[1,1,7,1] x) => (y) <{weights}> {{
      p = Conv<pads=[1,1,1,1]>(x, a) q = Conv<pads=[1,1,1,1]>(p, b)
      r = Conv<pads=[1,1,1,1]>(q, c) s = Conv<pads=[1,1,1,1]>(r, d) y = Sigmoid(s) }}"""
    program = banding(save(tmp_path, with_random_weights(parse(network))))[0].program
    ways = BandsSearch(program, replace(rules(), alignment=4), COSTS, placed)
    with pytest.raises(
        BandsLimitError, match="B more are gaps between tensors; 'r' alone"
    ) as caught:
        ways.within(1)
    binding = caught.value.binding
    assert binding.gaps > 0
    assert caught.value.least == binding.load + binding.gaps
    assert ways.within(caught.value.least).height == caught.value.least


def test_nothing_live_binds_nothing(ways):
    program = ways.whole.derivation.program
    empty = type(program)(program.name, {}, (), (), ())
    assert binding_of(derive(empty, rules())) is None


def test_a_budget_out_of_reach_says_what_is_reached(ways):
    with pytest.raises(BandsLimitError, match="least arena that bands reach") as caught:
        ways.within(64)
    assert isinstance(caught.value, UnmetBudgetError)
    assert caught.value.least == min(each.height for each in ways.frontier())
    assert caught.value.binding is not None
    assert not caught.value.is_stopped


def test_a_search_that_was_stopped_does_not_say_that_this_is_the_least(ways):
    ways._edges.should_stop = lambda: True
    with pytest.raises(BandsLimitError, match="the search was stopped at an arena of") as caught:
        ways.within(64)
    assert caught.value.is_stopped
    assert "--time-limit" in str(caught.value)
