"""Convolutions by tiles, after Winograd: the same but for rounding, in memory that is free."""

import math
import platform
from dataclasses import replace

import numpy as np
import pytest

from arenite.pipeline.base import Reading
from arenite.pipeline.making.building import build_model
from arenite.pipeline.targets.compiling import Compiled, Tuning, compile_model, lower_model, rules
from arenite.planner.importers.models import Source
from arenite.planner.placement.verification import verify
from arenite.planner.rewrites.derivation import derive
from arenite.planner.sizes import Dimension
from arenite.runtime import ProgramError, Session, processor_name
from arenite.runtime.operators import Conv2D
from arenite.runtime.program import program_pieces
from arenite.runtime.rewrites import (
    DIRECT,
    SPEEDS,
    TILES,
    Kernels,
    all_by,
    measured,
    num_by_tile,
    quickest_first,
    with_tiles,
)
from arenite.strategies import find
from support.edited_programs import edited, file_of
from support.one_step import Given, constant, one_step
from support.running import assert_same, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

TOLERANCE = 2e-5
LAYERS = """(float[{n},{c},{h},{w}] x) => (y)
    <float[{o},{c},3,3] a, float[{o}] b, float[{o},{o},3,3] d>
    {{ p = Conv<pads=[1,1,1,1]>(x, a, b) q = Relu(p)
      r = Conv<pads={pads}>(q, d) y = Add(r, q) }}"""
WIDE_THEN_NARROW = """(float[1,32,56,56] x) => (z)
    <float[32,32,3,3] a, float[160,32,1,1] b, float[16,160,1,1] c>
    { p = Conv<pads=[1,1,1,1]>(x, a) q = Conv(p, b) r = Relu(q) z = Conv(r, c) }"""


def written(tmp_path, text, **numbers):
    return save(tmp_path, with_random_weights(parse(text.format(**numbers) if numbers else text)))


def program_of(path):
    return lower_model(path).program


def session_of(program, tuned_on=None, **options):
    found = derive(program, rules())
    source = Source("tiles", "0" * 64, found.program, found.problem)
    compiled = Compiled(source, tuning=Tuning(tuned_on or processor_name(), measured({})))
    assembly = compiled.assemble(find("best")(found.problem))
    return Session.of_pieces(list(program_pieces(assembly)), "tiles", **options)


def in_threads(program, threads):
    steps = (
        replace(step, operator=replace(step.operator, tile_threads=threads))
        if isinstance(step.operator, Conv2D)
        else step
        for step in program.steps
    )
    return replace(program, steps=tuple(steps))


def placed(path, kernels, strategy="best"):
    """Return the program with its kernels chosen, its plan, and that without."""
    compiled = compile_model(path, kernels=kernels)
    plain = find(strategy)(compiled.source.problem)
    tiled, plan = compiled.tiled(plain)
    verify(tiled.source.problem, plan)
    return tiled, plan, plain


def tiles_of(compiled):
    return num_by_tile(compiled.program)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize(
    "shape",
    [
        {"n": 1, "c": 3, "o": 5, "h": 7, "w": 9, "pads": [1, 1, 1, 1]},
        {"n": 2, "c": 20, "o": 33, "h": 6, "w": 4, "pads": [0, 2, 2, 0]},
        {"n": 1, "c": 270, "o": 70, "h": 31, "w": 33, "pads": [1, 1, 1, 1]},
    ],
    ids=["small", "batch", "many blocks and parts"],
)
def test_results_are_those_of_onnx_runtime_on_any_number_of_threads(tmp_path, tile, shape):
    path = written(tmp_path, LAYERS, **shape)
    program = all_by(program_of(path), tile)
    found = []
    for stated, threads in ((1, 1), (3, 3), (2, 3)):
        with session_of(in_threads(program, stated), poison=0xFF, threads=threads) as session:
            feeds = random_feeds(session)
            found.append(session.run(feeds))
    assert_same(found[0], reference_outputs(path, feeds), TOLERANCE)
    for other in found[1:]:
        for name, array in found[0].items():
            assert array.tobytes() == other[name].tobytes()


LINES = """(float[1,48,12,17] x) => (y)
    <float[64,48,5,5] a, float[96,64,1,7] b, float[64,96,3,1] c>
    { p = Conv<pads=[2,2,2,2]>(x, a) q = Conv<pads=[0,3,0,3]>(p, b)
      y = Conv<pads=[1,0,1,0]>(q, c) }"""


def test_other_filters_have_tiles_of_eight_points_which_arm_alone_takes(tmp_path):
    path = written(tmp_path, LINES)
    tiled, _, _ = placed(path, Kernels.FASTEST)
    assert tiles_of(tiled) == {2: 1, 4: 1, 6: 1}
    program = tiled.program
    with session_of(program, poison=0xFF) as session:
        feeds = random_feeds(session)
        found = session.run(feeds)
    assert_same(found, reference_outputs(path, feeds), TOLERANCE)
    with session_of(program_of(path)) as session:
        directly = session.run(feeds)["y"].tobytes() == found["y"].tobytes()
    assert directly == (platform.machine() not in {"aarch64", "arm64"})


def test_tuning_offers_a_step_the_tiles_that_its_filter_has(tmp_path):
    program = program_of(written(tmp_path, LINES))
    for tile, number in ((2, 1), (4, 1), (6, 1)):
        assert num_by_tile(all_by(program, tile)) == {tile: number}


def test_small_images_are_computed_directly_on_x86_unless_tuned(tmp_path):
    path = written(tmp_path, LAYERS, n=1, c=32, o=32, h=9, w=9, pads=[1, 1, 1, 1])
    program = program_of(path)
    found = []
    for tile, tuned_on in ((DIRECT, None), (4, None), (4, "another")):
        with session_of(all_by(program, tile), tuned_on) as session:
            found.append(session.run(random_feeds(session))["y"].tobytes())
    directly, by_tiles, elsewhere = found
    assert directly != by_tiles
    assert elsewhere == (directly if platform.machine() == "x86_64" else by_tiles)


@pytest.mark.parametrize("strategy", ["best", "no-reuse", "onnxruntime-reuse"])
def test_an_arena_does_not_grow_for_tiles(tmp_path, strategy):
    path = written(tmp_path, WIDE_THEN_NARROW)
    quick, plan, plain = placed(path, Kernels.QUICK, strategy)
    assert tiles_of(quick)
    assert plan.height == plain.height
    direct, plan, plain = placed(path, Kernels.DIRECT, strategy)
    assert not tiles_of(direct)
    assert plan == plain


def test_tiles_are_left_where_there_is_no_gap_unless_the_arena_may_grow(tmp_path):
    path = written(
        tmp_path,
        """(float[1,64,56,56] x) => (y) <float[64,64,3,3] a>
        { y = Conv<pads=[1,1,1,1]>(x, a) }""",
    )
    assert not tiles_of(placed(path, Kernels.QUICK)[0])
    fastest, plan, plain = placed(path, Kernels.FASTEST)
    assert tiles_of(fastest)
    assert plan.height > plain.height


def test_tiles_of_four_take_less_working_memory_where_the_gap_is_small(tmp_path):
    path = written(
        tmp_path,
        """(float[1,64,56,56] x) => (y) <float[64,64,3,3] a, float[100,64,1,1] b>
        { p = Conv<pads=[1,1,1,1]>(x, a) y = Conv(p, b) }""",
    )
    quick, plan, plain = placed(path, Kernels.QUICK)
    assert tiles_of(quick) == {4: 1}
    assert plan.height == plain.height
    (step,) = (step for step in quick.program.steps if getattr(step.operator, "tile", 0))
    operands = quick.program.operands(step)
    given = step.operator.scratch(operands)
    assert step.operator.least_scratch(operands) <= given
    assert given < replace(step.operator, tile_scratch=0).scratch(operands)


@pytest.mark.parametrize("tile", TILES)
def test_results_are_the_same_with_any_working_memory(tmp_path, tile):
    path = written(tmp_path, LAYERS, n=1, c=90, o=70, h=31, w=33, pads=[1, 1, 1, 1])
    program = in_threads(all_by(program_of(path), tile), 2)

    def with_scratch(count):
        steps = []
        for step in program.steps:
            if getattr(step.operator, "tile", 0):
                operands = program.operands(step)
                least, most = (
                    step.operator.least_scratch(operands), step.operator.most_scratch(operands),
                )  # fmt: skip
                size = least + (most - least) * count // 7
                step = replace(step, operator=replace(step.operator, tile_scratch=size))
            steps.append(step)
        return replace(program, steps=tuple(steps))

    found = []
    for count in range(8):
        for threads in (1, 2):
            with session_of(with_scratch(count), poison=0xFF, threads=threads) as session:
                found.append(session.run(random_feeds(session))["y"])
    assert all(each.tobytes() == found[0].tobytes() for each in found)


def test_an_arena_does_not_grow_beyond_its_memory(tmp_path):
    path = written(
        tmp_path,
        """(float[1,64,56,56] x) => (y) <float[64,64,3,3] a>
        { y = Conv<pads=[1,1,1,1]>(x, a) }""",
    )
    capacity = 2 * 4 * 64 * 56 * 56 + 4096
    compiled = compile_model(path, kernels=Kernels.FASTEST, capacity=capacity)
    assert not tiles_of(compiled.tiled(find("best")(compiled.source.problem))[0])


def test_only_what_slides_by_single_pixels_in_one_group_has_tiles(tmp_path):
    path = written(
        tmp_path,
        """(float[1,32,32,32] x) => (y)
        <float[32,32,3,3] a, float[32,32,5,3] b,
        float[32,16,3,3] c, float[160,32,1,1] w, float[16,160,1,1] v>
        { p = Conv<pads=[2,2,2,2], dilations=[2,2]>(x, a) q = Conv<pads=[2,1,2,1]>(p, b)
          r = Conv<pads=[1,1,1,1], group=2>(q, c) s = Conv<pads=[1,1,1,1], strides=[2,2]>(r, a)
          t = Conv(s, w) y = Conv(t, v) }""",
    )
    assert not tiles_of(placed(path, Kernels.FASTEST)[0])
    assert all_by(program_of(path), 4).steps == program_of(path).steps


def test_what_is_measured_decides(tmp_path):
    path = written(tmp_path, WIDE_THEN_NARROW)
    program = program_of(path)
    (name,) = (step.name for step in all_by(program, 2).steps if getattr(step.operator, "tile", 0))
    found = derive(program, rules())
    plan = find("best")(found.problem)
    for times, tile in (
        ({0: 3.0, 2: 1.0, 4: 2.0}, 2),
        ({0: 3.0, 2: 2.0, 4: 1.0}, 4),
        ({0: 1.0, 2: 2.0, 4: 2.0}, 0),
    ):
        tiled, _, _ = with_tiles(
            found.program, found.problem, plan, Kernels.QUICK, measured({name: times})
        )
        assert max(getattr(step.operator, "tile", 0) for step in tiled.steps) == tile


def test_what_runs_by_tiles_is_not_made_in_bands(tmp_path):
    program = program_of(written(tmp_path, WIDE_THEN_NARROW))
    by_rows = [
        [step.operator.has_kernel_by_rows(each.operands(step)) for step in each.steps]
        for each in (program, all_by(program, 4))
    ]
    assert all(by_rows[0])
    assert by_rows[1] == [False, True, True]


def test_the_table_takes_large_tiles_on_large_images_and_none_on_few_channels():
    assert quickest_first(64, 64, 112, 112) == (6, 4, 2, DIRECT)
    assert quickest_first(64, 64, 20, 20)[0] == 4  # six do not divide it
    assert quickest_first(3, 64, 224, 224) == (DIRECT,)
    assert quickest_first(512, 8, 28, 28) == (DIRECT,)
    assert quickest_first(512, 512, 7, 7) == (4, 2, DIRECT)  # by instructions on ARM alone
    assert all(len(speeds) == 3 and min(speeds) > 0 for speeds in SPEEDS.values())


def test_a_dead_byte_of_working_memory_matters_not(tmp_path):
    path = written(tmp_path, LAYERS, n=1, c=40, o=40, h=9, w=9, pads=[1, 1, 1, 1])
    program = all_by(program_of(path), 4)
    outputs = []
    for byte in (0x00, 0xFF):
        with session_of(program, poison=byte) as session:
            outputs.append(session.run(random_feeds(session)))
    np.testing.assert_array_equal(outputs[0]["y"], outputs[1]["y"])


def test_a_file_that_makes_tiles_in_bands_is_refused():
    image, filters = Given((1, 4, 4, 2)), constant(np.zeros((1, 3, 3, 2, 16), np.float32))
    pieces = one_step(
        "Conv2D", {"tile": 2}, [image, filters], [Given((1, 2, 2, 3))], scratch=1 << 16,
        turns=[(0, 0, 1), (0, 1, 1)],
    )  # fmt: skip
    with pytest.raises(ProgramError, match="Winograd tiles cannot run in bands"):
        Session.of_pieces(pieces, "bands")


def by_sizes(tmp_path, *dimensions):
    """Return how a convolution of 16 channels is built at sizes, and the file for a range."""
    height, width = (dimensions * 2)[:2]
    path = written(tmp_path, LAYERS, n=1, c=16, o=16, pads="[1,1,1,1]", h=height, w=width)

    def build(dims):
        built = build_model(path, Reading(dims=dims), kernels=Kernels.FASTEST)
        return built.compiled.assemble(built.plan)

    return build, build({each: Dimension(each, 4, 40) for each in dimensions})


def outputs_of(session, height, width):
    x = np.random.default_rng(height).standard_normal((1, 16, height, width))
    return session.run({"x": x.astype(np.float32)})["y"]


def test_each_size_of_a_range_has_the_tiles_of_the_program_for_it_alone(tmp_path):
    build, assembly = by_sizes(tmp_path, "n")
    tiles = {n: quickest_first(16, 16, n, n)[0] for n in (4, 8, 9, 14, 40)}
    assert tiles == {4: DIRECT, 8: 4, 9: DIRECT, 14: 4, 40: 6}
    with Session.of_pieces([file_of(assembly)], "ranged") as session:
        for n in (*tiles, 6, 9):
            with Session.of_pieces([file_of(build({"n": n}))], "fixed") as fixed:
                expected = outputs_of(fixed, n, n)
            assert outputs_of(session, n, n).tobytes() == expected.tobytes(), n


def test_an_image_of_two_sizes_has_the_tiles_of_its_shorter_side(tmp_path):
    build, assembly = by_sizes(tmp_path, "h", "w")
    with Session.of_pieces([file_of(assembly)], "ranged") as session:
        for h, w in ((40, 5), (5, 40), (12, 30), (40, 40)):
            with Session.of_pieces([file_of(build({"h": h, "w": w}))], "fixed") as fixed:
                expected = outputs_of(fixed, h, w)
            assert outputs_of(session, h, w).tobytes() == expected.tobytes(), (h, w)


@pytest.mark.parametrize("channels", [80, 88, 96])
def test_an_image_of_two_sizes_has_room_for_its_tiles_where_the_other_side_is_long(
    tmp_path, channels
):
    path = written(
        tmp_path,
        """(float[1,64,h,w] x) => (y) <float[64,64,3,3] a, float[{c},64,1,1] b>
        {{ p = Conv<pads=[1,1,1,1]>(x, a) y = Conv(p, b) }}""",
        c=channels,
    )
    sizes = {each: Dimension(each, 8, 56, 4) for each in "hw"}
    built = build_model(path, Reading(dims=sizes), kernels=Kernels.QUICK)
    with Session.of_pieces([file_of(built.assemble())], "ranged") as session:
        for h, w in ((56, 56), (56, 24), (24, 56), (56, 8), (8, 56), (16, 40)):
            feeds = {"x": np.ones((1, 64, h, w), np.float32)}
            expected = reference_outputs(path, feeds)
            assert_same(session.run(feeds), expected, TOLERANCE)


def test_tiles_that_do_not_exist_are_refused(tmp_path):
    _, assembly = by_sizes(tmp_path, "n")

    def of_five_rows(root):
        one, most = ({"operation": "constant", "a": a, "b": 0} for a in (1, 40))
        count = len(root["expressions"])
        root["expressions"] += [
            one, most, {"operation": "dimension", "a": 0, "b": 0},
            {"operation": "divide", "a": count + 2, "b": count + 1},
            {"operation": "add", "a": count, "b": count},
            {"operation": "add", "a": count + 4, "b": count + 4},
            {"operation": "add", "a": count + 5, "b": count},
            {"operation": "add", "a": count + 3, "b": count + 6},
        ]  # fmt: skip
        found = next(each for each in root["numbers"] if each["number"] == 4)
        found["expression"] = len(root["expressions"]) - 1

    with pytest.raises(ProgramError, match="Winograd tiles must have 2, 4 or 6 rows"):
        Session.of_pieces([edited(assembly, of_five_rows)], "five")


@pytest.mark.parametrize("number", [5, 6])
def test_other_numbers_of_a_convolution_depend_on_no_size(number, tmp_path):
    _, assembly = by_sizes(tmp_path, "n")

    def renumber(root):
        found = next(each for each in root["numbers"] if each["number"] == 4)
        root["numbers"] = [{**found, "number": number}]

    with pytest.raises(ProgramError, match=f"number {number}"):
        Session.of_pieces([edited(assembly, renumber)], "renumbered")


WIDE_PRODUCTS = """(float[1,65,128] x) => (y)
    <float[128,640] a, float[640,640] b, float[640,96] c>
    { p = MatMul(x, a) q = MatMul(p, b) y = MatMul(q, c) }"""


def test_products_by_sums_of_weights_take_working_memory_in_gaps_alone(tmp_path):
    path = written(tmp_path, WIDE_PRODUCTS)
    plain = placed(path, Kernels.DIRECT)[2]
    for kernels in Kernels:
        compiled, plan, _ = placed(path, kernels)
        expected = kernels is not Kernels.DIRECT
        given = [step.operator.tile_scratch for step in compiled.program.steps]
        assert plan.height == plain.height
        assert all(step.operator.strassen == expected for step in compiled.program.steps)
        assert any(given) == expected
        assert not given[1]  # at the peak: on the stack
        for step, size in zip(compiled.program.steps, given, strict=True):
            operands = compiled.program.operands(step)
            assert step.operator.scratch(operands) == size
            assert size <= math.prod(step.operator.sum_scratch(operands))
