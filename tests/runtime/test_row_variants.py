"""Programs in bands of which rows are spilled: the same bits, wherever the rows come back to."""

from collections import Counter
from functools import partial

import pytest

from arenite.pipeline.making.trading import one_lane, trade
from arenite.pipeline.targets.compiling import lower_model, rules, runs_by_rows
from arenite.planner.placement.strategy import run
from arenite.planner.programs.costs import Budget, Costs, Link
from arenite.strategies import StripsSearch, find, find_policy
from arenite.strategies.base import native
from support.banding import assert_same_bits, fed, outputs, outputs_of
from support.command_models import SMALL_UNET
from support.tiny_onnx import parse, save, with_random_weights

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")

COSTS = one_lane(Costs(30e9, 20e9, Link(1e9, 1e9), step_s=3e-7))
PLACE = partial(run, find("best"))


@pytest.fixture(scope="module")
def lowered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unet")
    return lower_model(save(folder, with_random_weights(parse(SMALL_UNET))))


@pytest.fixture(scope="module")
def programs(lowered):
    """Programs in bands, from whole to the least."""
    program = lowered.program
    ways = StripsSearch(program, rules(), COSTS, PLACE, is_allowed=partial(runs_by_rows, program))
    return list(ways.frontier())


def spilled(banded, budget):
    return trade(banded, find_policy("offload-prefetch"), budget, COSTS, rules(), PLACE)


@pytest.mark.parametrize("index", [-2, -1])
@pytest.mark.parametrize("budget", [Budget(90, is_percent=True), Budget(45, is_percent=True)])
def test_rows_that_were_spilled_make_the_bits_of_the_whole(lowered, programs, index, budget):
    whole, banded = programs[0], programs[index]
    found = spilled(banded, budget)
    assert found.height <= budget.bytes_of(banded.height)
    assert found.spilled
    arrays = fed(lowered)
    assert_same_bits(
        outputs_of(lowered, found.derivation, found.plan, arrays), outputs(lowered, whole, arrays)
    )


def names_of_steps(lowered, derivation, plan):
    assembly = lowered.compiled(derivation).assemble(plan)
    return Counter(step["name"] for step in assembly.root["steps"])


def test_a_step_that_finds_a_row_at_two_places_is_two_steps_of_the_file(lowered, programs):
    banded = programs[-1]
    plain = names_of_steps(lowered, banded.derivation, banded.plan)
    assert set(plain.values()) == {1}
    found = spilled(banded, Budget(45, is_percent=True))
    again = names_of_steps(lowered, found.derivation, found.plan)
    assert max(again.values()) > 1
    assert set(plain) < set(again)
