"""Kernels that were measured on one processor: taken there, and those of the table elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from arenite.pipeline.base import Reading
from arenite.pipeline.targets.compiling import Compiled, Tuning, compile_model, lower_model, rules
from arenite.planner.importers.models import Source
from arenite.planner.placement.verification import verify
from arenite.planner.rewrites.derivation import derive
from arenite.planner.sizes import Dimension, at
from arenite.runtime import ProgramError, Session, Tuned, processor_name
from arenite.runtime.operators import Conv2D
from arenite.runtime.program import program_pieces
from arenite.runtime.rewrites import Kernels, all_by, measured, num_by_tile
from arenite.strategies import find
from support.one_step import Given, constant, one_step
from support.running import random_feeds
from support.tiny_onnx import parse, save, with_random_weights

ANOTHER = "A processor that nobody has"
WIDE_THEN_NARROW = """(float[1,32,56,56] x) => (z)
    <float[32,32,3,3] a, float[160,32,1,1] b, float[16,160,1,1] c>
    { p = Conv<pads=[1,1,1,1]>(x, a) q = Conv(p, b) r = Relu(q) z = Conv(r, c) }"""
TABLE = 6
"""Tiles that the table takes for its only convolution of 3 x 3."""


@pytest.fixture
def model(tmp_path):
    return save(tmp_path, with_random_weights(parse(WIDE_THEN_NARROW)))


def quickest(program, tile):
    """Return what prefers one tile for every convolution that takes it."""
    others = dict.fromkeys((0, 2, 4), 2.0)
    return measured({step.name: {**others, tile: 1.0} for step in program.steps})


def built(model, tile, processor, kernels=Kernels.QUICK):
    """Return the program as if the tile had been the quickest on a processor, and its plan."""
    compiled = compile_model(
        model, kernels=kernels, tune=lambda program: Tuning(processor, quickest(program, tile))
    )
    return compiled.tiled(find("best")(compiled.source.problem))


def session_of(compiled, plan):
    return Session.of_pieces(list(program_pieces(compiled.assemble(plan))), "tuned")


def ran_by(model, tile):
    """Return the outputs when every convolution that can runs by such tiles."""
    found = derive(all_by(lower_model(model).program, tile), rules())
    source = Source("tiles", "0" * 64, found.program, found.problem)
    compiled = Compiled(source, tuning=Tuning(processor_name(), measured({})))
    with session_of(compiled, find("best")(found.problem)) as session:
        return session.run(random_feeds(session))["z"]


@pytest.mark.parametrize("tile", [0, 2, 4])
@pytest.mark.parametrize("is_here", [True, False])
def test_tuned_tiles_run_on_their_processor_and_those_of_the_table_elsewhere(model, tile, is_here):
    processor = processor_name() if is_here else ANOTHER
    with session_of(*built(model, tile, processor)) as session:
        assert session.tuned == Tuned(processor, is_here)
        outputs = session.run(random_feeds(session))["z"]
    expected = tile if is_here else TABLE
    np.testing.assert_array_equal(outputs, ran_by(model, expected))
    if expected != 2:  # then this test tells the kernels apart
        assert outputs.tobytes() != ran_by(model, 2).tobytes()


def test_a_program_that_nobody_tuned_names_no_processor(model):
    compiled = compile_model(model)
    with session_of(*compiled.tiled(find("best")(compiled.source.problem))) as session:
        assert session.tuned is None


@pytest.mark.parametrize("tile", [0, 2, 4])
def test_working_memory_is_enough_for_either_choice(model, tile):
    compiled, plan = built(model, tile, ANOTHER)
    verify(compiled.source.problem, plan)
    assert num_by_tile(compiled.program) == {TABLE: 1}
    assert num_by_tile(compiled.program, tuned=True) == ({tile: 1} if tile else {})
    (step,) = (each for each in compiled.program.steps if getattr(each.operator, "tile", 0))
    operands, both = compiled.program.operands(step), step.operator
    assert both.scratch(operands) == max(
        Conv2D.scratch(one, operands)
        for one in (replace(both, tile=0), replace(both, tuned_tile=0))
    )


def test_an_arena_does_not_grow_for_either_choice(model):
    compiled = compile_model(model, kernels=Kernels.DIRECT)
    direct = find("best")(compiled.source.problem)
    for tile in (2, 4):
        assert built(model, tile, ANOTHER)[1].height == direct.height


def test_what_may_run_by_tiles_on_some_processor_is_not_made_in_bands(model):
    compiled, _ = built(model, 2, ANOTHER)
    (step,) = (each for each in compiled.program.steps if getattr(each.operator, "tile", 0))
    operands = compiled.program.operands(step)
    assert not replace(step.operator, tile=0).has_kernel_by_rows(operands)
    assert replace(step.operator, tile=0, tuned_tile=0).has_kernel_by_rows(operands)


def test_a_range_is_tuned_at_sizes_where_the_table_chooses_as_at_the_highest(tmp_path):
    text = WIDE_THEN_NARROW.replace("56,56", "n,n")
    model = save(tmp_path, with_random_weights(parse(text)))
    compiled = compile_model(
        model,
        Reading(dims={"n": Dimension("n", 4, 56)}),
        kernels=Kernels.FASTEST,
        tune=lambda program: Tuning(processor_name(), quickest(program, 2)),
    )
    tiled, _ = compiled.tiled(find("best")(compiled.source.problem))
    (operator,) = (s.operator for s in tiled.program.steps if getattr(s.operator, "tile", 0))
    for n, table, tuned in ((4, 0, 0), (6, 0, 0), (7, 4, 4), (33, TABLE, 2), (56, TABLE, 2)):
        assert (at(operator.tile, {"n": n}), at(operator.tuned_tile, {"n": n})) == (table, tuned)


def pieces(kernel, *, scratch=1 << 16, processor=None, turns=()):
    filters = constant(np.zeros((1, 3, 3, 2, 16), np.float32))
    edit = None if processor is None else lambda root: root.update(tuned_on=processor)
    return one_step(
        "Conv2D", kernel, [Given((1, 4, 4, 2)), filters], [Given((1, 2, 2, 3))], scratch=scratch,
        turns=turns, edit=edit,
    )  # fmt: skip


@pytest.mark.parametrize(
    "processor", [processor_name(), ANOTHER, ""], ids=["here", "elsewhere", "unnamed"]
)
def test_a_file_is_checked_alike_on_every_processor(processor):
    Session.of_pieces(pieces({"tile": 2, "tuned_tile": 4}, processor=processor), "good").close()
    for kernel, options, reason in (
        ({"tuned_tile": 3}, {}, "Winograd tiles must have 2, 4 or 6 rows"),
        ({"tile": 3}, {}, "Winograd tiles must have 2, 4 or 6 rows"),
        ({"tuned_tile": 2, "tuned_threads": 0}, {}, "its number of threads must be 1 to 256"),
        ({"tuned_tile": 2, "tuned_threads": 257}, {}, "its number of threads must be 1 to 256"),
        ({"tuned_tile": 4}, {"scratch": 64}, "its working memory"),
        ({"tile": 4}, {"scratch": 64}, "its working memory"),
        (
            {"tuned_tile": 2},
            {"turns": [(0, 0, 1), (0, 1, 1)]},
            "Winograd tiles cannot run in bands",
        ),
    ):
        with pytest.raises(ProgramError, match=reason):
            Session.of_pieces(pieces(kernel, processor=processor, **options), "hostile")


def test_tuned_tiles_of_no_processor_are_refused():
    with pytest.raises(ProgramError, match="the program states no processor"):
        Session.of_pieces(pieces({"tuned_tile": 2}), "nobody's")
