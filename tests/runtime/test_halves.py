"""Results kept as 16-bit floats: rounded once, the same whole and by rows, in half the bytes."""

import os
import subprocess
import sys

import numpy as np
import pytest
from onnx import numpy_helper

import arenite
from arenite.pipeline.base import Reading
from arenite.pipeline.making import build_model
from arenite.pipeline.making.programs import rounding_error
from arenite.planner import DType
from arenite.runtime import ProgramError, Session
from arenite.runtime.rewrites import Activations, weight_bytes
from support.one_step import Given, constant, one_step
from support.tiny_onnx import parse, save, with_random_weights
from support.trading import CARRIED

RNG = np.random.default_rng(28)
PLENTY = 1 << 20
NETWORK = """(float[1,3,64,48] x) => (y, z)
    <float[24,3,3,3] a, float[24] b, float[24,1,5,5] d, float[40,24,1,1] e, float[40,40,3,3] f>
    { p = Conv<pads=[1,1,1,1]>(x, a, b) q = Relu(p)
      r = Conv<pads=[2,2,2,2], group=24, strides=[2,2]>(q, d) s = Conv(r, e) t = Sigmoid(s)
      u = Mul(s, t) v = Conv<pads=[1,1,1,1]>(u, f) w = Add(v, u)
      m = MaxPool<kernel_shape=[2,2], strides=[2,2]>(w) n = Concat<axis=1>(m, m)
      y = GlobalAveragePool(n) z = Relu(w) }"""


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def as_halves(given):
    return Given(given.shape, "float16") if given is not None and given.array is None else given


def image(*shape):
    return Given(shape)


STEPS = {
    "Conv2D": (
        {"padding": [1, 1, 1, 1], "strides": [2, 1]},
        [image(1, 17, 9, 5), constant(floats(2, 3, 3, 5, 16)), constant(floats(20))],
        image(1, 9, 9, 20),
    ),
    "Conv2D with an addend": (
        {},
        [image(1, 12, 7, 5), constant(floats(1, 1, 1, 5, 16)), None, image(1, 12, 7, 16)],
        image(1, 12, 7, 16),
    ),
    "DepthwiseConv2D": (
        {"padding": [2, 2, 2, 2], "dilations": [2, 2]},
        [image(1, 17, 9, 5), constant(floats(1, 3, 3, 5)), constant(floats(5))],
        image(1, 17, 9, 5),
    ),
    "TransposedConv2D": (
        {"strides": [2, 2]},
        [image(1, 8, 5, 4), constant(floats(20, 3, 3, 4)), constant(floats(20))],
        image(1, 17, 11, 20),
    ),
    "FullyConnected": ({}, [image(1, 9, 30), constant(floats(2, 30, 16))], image(1, 9, 17)),
    "Pool2D": (
        {"kind": "maximum", "window": [3, 3], "strides": [2, 2]},
        [image(1, 15, 9, 3)],
        image(1, 7, 4, 3),
    ),
    "Unary": ({"function": "swish", "alpha": 1.0}, [image(1, 11, 5, 3)], image(1, 11, 5, 3)),
    "Binary": (
        {"function": "multiply"}, [image(1, 11, 5, 3), image(1, 1, 1, 3)], image(1, 11, 5, 3)
    ),
    "Softmax": ({}, [image(1, 11, 33)], image(1, 11, 33)),
    "LayerNorm": (
        {"epsilon": 1e-5}, [image(1, 11, 33), constant(floats(33)), constant(floats(33))],
        image(1, 11, 33),
    ),
    "Reduce": ({"function": "mean", "axes": [1, 2]}, [image(1, 13, 5, 8)], image(1, 1, 1, 8)),
    "MatMul of one image": (
        {}, [image(1, 5, 7), constant(floats(1, 7, 9))], image(1, 5, 9)
    ),
    "MatMul": ({}, [image(2, 5, 7), constant(floats(2, 7, 9))], image(2, 5, 9)),
}  # fmt: skip
FILTERS = {
    "Conv2D": (
        {"padding": [1, 1, 1, 1], "strides": [2, 1], "max": 2.0},
        [image(1, 17, 9, 5), constant(floats(7, 3, 3, 5, 16)), constant(floats(100))],
        image(1, 9, 9, 100),
    ),
    "Conv2D with an addend": (
        {},
        [image(1, 12, 7, 5), constant(floats(3, 1, 1, 5, 16)), None, image(1, 12, 7, 48)],
        image(1, 12, 7, 48),
    ),
    "FullyConnected": (
        {}, [image(1, 9, 30), constant(floats(5, 30, 16)), constant(floats(75))], image(1, 9, 75)
    ),
    "FullyConnected of one row": ({}, [image(1, 30), constant(floats(5, 30, 16))], image(1, 75)),
}  # fmt: skip
BY_ROWS = [name for name in STEPS if not name.startswith("MatMul")]


def session_of(name, *, halves, scratch, turns=()):
    kernel, inputs, output = STEPS[name]
    if halves:
        inputs, output = list(map(as_halves, inputs)), as_halves(output)
    kind = name.split()[0]
    pieces = one_step(kind, kernel, inputs, [output], scratch=scratch, turns=turns)
    return Session.of_pieces(pieces, kind)


def least_scratch(name):
    low, high = 0, PLENTY // 64
    while low < high:
        middle = (low + high) // 2
        try:
            session_of(name, halves=True, scratch=64 * middle).close()
        except ProgramError:
            low = middle + 1
        else:
            high = middle
    return 64 * low


def feeds_of(name):
    rng = np.random.default_rng(1)
    return {
        f"i{i}": rng.standard_normal(each.shape).astype(np.float16)
        for i, each in enumerate(STEPS[name][1])
        if each is not None and each.array is None
    }


@pytest.mark.parametrize("name", STEPS)
def test_a_step_rounds_what_it_computes_with_32_bits(name):
    feeds = feeds_of(name)
    with session_of(name, halves=False, scratch=PLENTY) as session:
        exact = session.run({k: v.astype(np.float32) for k, v in feeds.items()})["o0"]
    with session_of(name, halves=True, scratch=PLENTY) as session:
        whole = session.run(feeds)["o0"]
    assert whole.dtype == np.float16
    np.testing.assert_array_equal(whole, exact.astype(np.float16))


@pytest.mark.parametrize("name", BY_ROWS)
def test_a_step_takes_a_few_rows_at_a_time_where_not_all_fit(name):
    feeds = feeds_of(name)
    with session_of(name, halves=True, scratch=PLENTY) as session:
        whole = session.run(feeds)["o0"]
    least = least_scratch(name)
    operands = [each for each in (*STEPS[name][1], STEPS[name][2]) if each and each.array is None]
    images = sum(4 * np.prod(each.shape) for each in operands)
    assert least < images
    for scratch in range(least, int(least + images), 320 - 64):
        with session_of(name, halves=True, scratch=scratch // 64 * 64) as session:
            np.testing.assert_array_equal(session.run(feeds)["o0"], whole)


@pytest.mark.parametrize("name", [name for name in BY_ROWS if name != "Reduce"])
def test_a_step_runs_in_bands(name):
    rows = STEPS[name][2].shape[1]
    turns = [(0, row, min(3, rows - row)) for row in range(0, rows, 3)]
    feeds = feeds_of(name)
    with session_of(name, halves=True, scratch=PLENTY) as session:
        whole = session.run(feeds)["o0"]
    for scratch in (least_scratch(name), PLENTY):
        with session_of(name, halves=True, scratch=scratch, turns=turns) as session:
            np.testing.assert_array_equal(session.run(feeds)["o0"], whole)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("with_images", [False, True])
def test_a_filter_of_halves_is_converted_by_panels(name, with_images):
    kernel, inputs, output = FILTERS[name]
    kind = name.split()[0]
    rng = np.random.default_rng(3)
    feeds = {
        f"i{i}": rng.standard_normal(each.shape).astype(np.float16)
        for i, each in enumerate(inputs)
        if each and each.array is None
    }
    halved = inputs[1].array.astype(np.float16)
    rounded = [inputs[0], constant(halved.astype(np.float32)), *inputs[2:]]
    with Session.of_pieces(one_step(kind, kernel, rounded, [output]), kind) as session:
        exact = session.run({k: v.astype(np.float32) for k, v in feeds.items()})["o0"]
    kept = [inputs[0], constant(halved), *inputs[2:]]
    dtype = np.float16 if with_images else np.float32
    if with_images:
        kept, output = list(map(as_halves, kept)), as_halves(output)
    panel = 4 * halved[0].size
    images = 1 << 16 if with_images else 0
    rows = range(0, output.shape[1], 4) if len(output.shape) > 2 else ()
    bands = [(0, row, min(4, output.shape[1] - row)) for row in rows]
    for panels in (2, 3, len(halved)) if with_images else (1, 2, len(halved)):
        for turns in ([], bands):
            scratch = images + panels * panel + 64
            pieces = one_step(kind, kernel, kept, [output], scratch=scratch, turns=turns)
            with Session.of_pieces(pieces, kind) as session:
                made = session.run({k: v.astype(dtype) for k, v in feeds.items()})["o0"]
                assert session.memory().weights_resident < 1.2 * halved.nbytes + 1024
            np.testing.assert_array_equal(made, exact.astype(dtype))
    if with_images or name != "FullyConnected of one row":  # which is read where it lies
        with pytest.raises(ProgramError, match="its working memory has 0 B"):
            Session.of_pieces(one_step(kind, kernel, kept, [output]), kind)


def test_a_filter_of_halves_in_groups_or_tiles_is_refused():
    filters = constant(floats(2, 3, 3, 4, 16).astype(np.float16))
    for kernel in ({"groups": 2}, {"groups": 1, "tile": 2}):
        source = image(1, 5, 5, 4 * kernel["groups"])
        pieces = one_step("Conv2D", kernel, [source, filters], [image(1, 3, 3, 32)], scratch=4096)
        with pytest.raises(ProgramError, match="has groups or Winograd tiles"):
            Session.of_pieces(pieces, "Conv2D")


def test_working_memory_for_no_row_is_refused():
    with pytest.raises(ProgramError, match=r"has 640 B for its 16-bit floats; it needs 1344"):
        session_of("Conv2D", halves=True, scratch=640)
    with pytest.raises(ProgramError, match="has 64 B for its 16-bit floats; it needs"):
        session_of("MatMul", halves=True, scratch=64)
    with pytest.raises(ProgramError, match="has 0 B"):
        session_of("Unary", halves=True, scratch=None)


def test_rows_of_halves_that_cannot_be_are_refused():
    with pytest.raises(ProgramError, match="its working memory has 0 B; it needs 448"):
        session_of("MatMul of one image", halves=True, scratch=PLENTY, turns=[(0, 0, 5)])
    with pytest.raises(ProgramError, match="into sums in bands"):
        session_of("Reduce", halves=True, scratch=PLENTY, turns=[(0, 0, 7), (0, 7, 6)])


CONVERTED = """
import numpy as np
from arenite.runtime import Session
from support.one_step import Given, one_step
every = np.arange(65536, dtype=np.uint16).view(np.float16).reshape(1, 16, 4096)
kernel = {"function": "leaky_relu", "alpha": 1.0}
def run(source, made):
    types = [Given(source.shape, source.dtype.name)], [Given(source.shape, made)]
    with Session.of_pieces(one_step("Unary", kernel, *types, scratch=1 << 20), "x") as session:
        return session.run({"i0": source})["o0"]
np.testing.assert_array_equal(run(every, "float32"), every.astype(np.float32))
np.testing.assert_array_equal(run(every, "float16"), every)
rng = np.random.default_rng(0)
bits = rng.integers(0, 1 << 32, (1, 16, 4096), dtype=np.uint64).astype(np.uint32)
between = every.astype(np.float32)
halfway = np.nextafter(between, np.float32(np.inf)) / 2 + between / 2
for floats in (bits.view(np.float32), halfway, between * np.float32(1.00048828125)):
    with np.errstate(over="ignore", invalid="ignore"):
        expected = floats.astype(np.float16)
    np.testing.assert_array_equal(run(floats, "float16"), expected)
"""


@pytest.mark.parametrize("vectors", ["any", "avx2", "avx512"])
def test_every_number_is_converted_as_numpy_does(vectors):
    path = os.pathsep.join(each for each in sys.path if each)
    environment = {**os.environ, "ARENITE_VECTORS": vectors, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", CONVERTED], check=True, env=environment)


@pytest.fixture
def network(tmp_path):
    return save(tmp_path, with_random_weights(parse(NETWORK)))


def run_of(model, **options):
    with arenite.Session(model, **options) as session:
        (port,) = session.inputs
        feeds = {port.name: np.random.default_rng(2).standard_normal(port.shape, np.float32)}
        return {k: v.copy() for k, v in session.run(feeds).items()}, session.arena_bytes


def test_a_model_keeps_results_in_half_the_bytes_and_its_inputs_and_outputs(network):
    exact, plain_bytes = run_of(network)
    rounded, bytes_of_halves = run_of(network, activations="fp16")
    assert bytes_of_halves < 0.75 * plain_bytes  # input and one output stay as they are
    for name, right in exact.items():
        assert rounded[name].dtype == np.float32
        np.testing.assert_allclose(rounded[name], right, atol=3e-3 * np.abs(right).max())
        assert not np.array_equal(rounded[name], right)


def test_halves_are_the_same_in_bands_and_leave_no_memory_unwritten(network, tmp_path):
    whole, _ = run_of(network, activations="fp16")
    output = tmp_path / "fitted.arena"
    fitted = arenite.fit(network, "75%", activations="fp16")
    fitted.save(output)
    for options in ({}, {"poison": 0xFF}, {"guard": True}, {"threads": 2}):
        banded, _ = run_of(output, **options)
        for name, right in whole.items():
            np.testing.assert_array_equal(banded[name], right)


@pytest.mark.parametrize("policy", ["joint", "offload-prefetch"])
def test_halves_are_spilled_to_the_same_bits(tmp_path, policy):
    model = save(tmp_path, with_random_weights(parse(CARRIED)))
    whole, whole_bytes = run_of(model, activations="fp16")
    output = tmp_path / "spilled.arena"
    arenite.fit(model, "85%", policy=policy, activations="fp16").save(output)
    spilled, spilled_bytes = run_of(output, poison=0xFF)
    assert spilled_bytes < 0.85 * whole_bytes
    for name, right in whole.items():
        np.testing.assert_array_equal(spilled[name], right)


@pytest.mark.parametrize("budget", ["60%,in-turn", "60%,beside"])
def test_weights_are_streamed_beside_halves(network, tmp_path, budget):
    output = tmp_path / "streamed.arena"
    arenite.build(network, output, activations="fp16", weights=budget)
    made, _ = run_of(output)
    exact, _ = run_of(network)
    for name, right in exact.items():
        np.testing.assert_allclose(made[name], right, atol=3e-3 * np.abs(right).max())


def test_a_program_is_written_with_halves_and_states_what_they_lose(network):
    reading = Reading(activations=Activations.FP16)
    built = build_model(network, reading, is_whole=True)
    program = built.compiled.program
    kept = [each for each in program.tensors.values() if each.dtype is DType.FLOAT16]
    assert len(kept) > 5
    assert all(program.tensors[name].dtype is DType.FLOAT32 for name in program.input_tensors)
    assert 1e-5 < rounding_error(network, reading, built.compiled, built.plan) < 3e-3


def test_weights_take_half_the_bytes(tmp_path):
    text = """(float[1,16,64,64] x) => (y) <float[256,16,1,1] a, float[64,256,1,1] b>
        { m = MaxPool<kernel_shape=[8,8], strides=[8,8]>(x)
          p = Conv(m, a) q = Relu(p) y = Conv(q, b) }"""
    proto = with_random_weights(parse(text))
    model = save(tmp_path, proto)
    plain = build_model(model).compiled.program
    halved = build_model(model, Reading(activations=Activations.FP16)).compiled.program
    assert weight_bytes(halved) < 0.55 * weight_bytes(plain)
    (large,) = (each for each in proto.graph.initializer if each.name == "b")
    array = numpy_helper.to_array(large).copy()
    array[0, 0] = 1e5
    large.CopyFrom(numpy_helper.from_array(array, "b"))
    kept = build_model(
        save(tmp_path, proto), Reading(activations=Activations.FP16)
    ).compiled.program
    types = {str(each.dtype) for each in kept.constants.values() if each.ndim > 1}
    assert types == {"float16", "float32"}


def test_a_plan_file_states_halves(network, tmp_path):
    plan = tmp_path / "plan.json"
    planned = arenite.plan(network, activations="fp16")
    planned.save(plan)
    assert '"activations": "fp16"' in plan.read_text()
    built = arenite.build(network, tmp_path / "x.arena", plan=plan)
    assert built.plan.height == planned.plan.height < arenite.plan(network).plan.height


def test_what_sizes_alone_decide_is_not_rounded(tmp_path):
    text = """(float[n,4] x) => (y) <int64 zero = {0}, int64 one = {1}, float third = {0.333},
        int64[1] k = {1}> { a = Abs(x) s = Shape(x) g = Gather(s, zero) r = Range(zero, g, one)
        f = Cast<to=1>(r) h = Mul(f, third) u = Unsqueeze(h, k) v = Mul(a, u) y = Neg(v) }"""
    path = save(tmp_path, parse(text))
    found = []
    for rows in (9, "1..9"):
        arenite.build(path, tmp_path / "made.arena", dims={"n": rows}, activations="fp16")
        with Session(tmp_path / "made.arena") as session:
            found.append(session.run({"x": np.ones((9, 4), np.float32)})["y"])
    np.testing.assert_array_equal(*found)
