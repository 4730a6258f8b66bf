"""Programs in bands over several memories: the quickest is taken, and its outputs are the same."""

import pytest

from arenite.planner.operators.bands import Band
from arenite.planner.placement.verification import verify
from arenite.planner.programs.memories import CostedMemory, excess_of, traffic_of
from arenite.planner.tensors import Memory
from arenite.strategies import InBands
from arenite.strategies.bands.memories_search import (
    MemoriesLimitError,
    OverMemories,
    quickest_over,
)
from arenite.strategies.base import native
from support.banding import COSTS, assert_same_bits, banded_ways, fed, outputs, placed
from support.command_models import BANDED
from support.tiny_onnx import parse, save, with_random_weights

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")


@pytest.fixture
def ways(tmp_path):
    return banded_ways(save(tmp_path, with_random_weights(parse(BANDED))))


def memories(fast, slow=None, read=4.0, write=6.0):
    return [CostedMemory(Memory("sram", fast)), CostedMemory(Memory("psram", slow), read, write)]


def over(ways, kinds):
    found = quickest_over(ways, kinds, COSTS, placed)
    verify(found.problem, found.plan)
    return found


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.4, 0.6, 0.9])
def test_rows_lie_in_either_memory_and_the_outputs_are_those_of_the_whole(ways, share):
    lowered, ways = ways
    found = over(ways, memories(int(share * ways.whole.height)))
    fast, slow = found.plan.heights
    assert 0 < fast <= share * ways.whole.height
    assert slow or share > 0.5  # less than that has no room for the graph input
    arrays = fed(lowered)
    assert_same_bits(outputs(lowered, found, arrays), outputs(lowered, ways.whole, arrays))


def test_all_rows_of_a_tensor_lie_in_one_memory(ways):
    _, ways = ways
    banded = over(ways, memories(ways.whole.height // 5, read=50.0, write=50.0))
    program = banded.program
    memories_of = {}
    for step in program.steps:
        if isinstance(step.operator, Band):
            for name, pieces, _ in step.operator.pieces_by_name(step.inputs, step.outputs):
                memories_of.setdefault(pieces.tensor, set()).add(program.tensors[name].memory)
    assert all(len(held) == 1 for held in memories_of.values())
    assert set.union(*memories_of.values()) == {"sram", "psram"}


def test_its_time_is_that_of_its_turns_and_of_what_slow_bytes_take_longer(ways):
    _, ways = ways
    kinds = memories(ways.whole.height // 2)
    found = over(ways, kinds)
    problem, program = found.problem, found.program
    beyond = excess_of(problem, kinds, traffic_of(problem, program))
    assert beyond > 0
    alone = [*ways.frontier(), ways.above(ways.whole.height // 2, 1.0)]
    turns = {InBands.of(each).regions: each.seconds for each in alone}
    turns_s = turns[InBands.of(found).regions]
    assert found.seconds == pytest.approx(turns_s + beyond / COSTS.bytes_per_s)


def test_no_other_program_of_the_frontier_is_quicker(ways):
    _, ways = ways
    kinds = memories(ways.whole.height // 2)
    found = over(ways, kinds)
    note = found.note(OverMemories)
    assert note.whole_s is not None
    assert found.seconds <= note.whole_s


def test_what_fits_the_fast_memory_stays_there(ways):
    _, ways = ways
    found = over(ways, memories(ways.whole.height))
    assert found.plan.heights == (ways.whole.height, 0)
    assert InBands.of(found).regions == ()
    assert found.seconds == found.note(OverMemories).whole_s == ways.whole.seconds


def test_bands_are_left_out_where_a_slow_memory_costs_nothing_more(ways):
    _, ways = ways
    found = over(ways, memories(ways.whole.height // 2, read=1.0, write=1.0))
    assert InBands.of(found).regions == ()


def test_a_dear_memory_holds_what_bands_leave_and_no_more(ways):
    _, ways = ways
    cheap, dear = (over(ways, memories(13_000, read=cost, write=cost)) for cost in (1.01, 500.0))
    assert cheap.num_turns < dear.num_turns


def test_what_does_not_fit_says_what_binds_and_which_sizes_would_do(ways):
    _, ways = ways
    with pytest.raises(MemoriesLimitError, match="the graph input 'x' alone takes") as caught:
        over(ways, memories(4096, 8192))
    error = caught.value
    assert error.binding is not None
    assert not error.is_stopped
    assert set(error.sizes) == {"sram", "psram"}
    assert error.sizes["sram"] > 4096
    assert error.sizes["psram"] > 8192
    assert over(ways, memories(error.sizes["sram"], 8192)).plan.height > 0
    assert over(ways, memories(4096, error.sizes["psram"])).plan.height > 0


def test_a_search_that_is_stopped_says_so(ways):
    _, ways = ways
    with pytest.raises(MemoriesLimitError, match="--time-limit"):
        quickest_over(ways, memories(64, 64), COSTS, placed, lambda: True)
