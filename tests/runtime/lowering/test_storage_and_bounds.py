"""Where results of a lowered model lie, and what its numbers are bounded by."""

from math import prod
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.programs.program import Program
from arenite.runtime import Session
from arenite.runtime.operators import External
from support.running import assert_agrees, assert_same, build, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights


def saved(folder: Path, text: str, **options: bool) -> Path:
    return save(folder, parse(text, **options))


def outputs_of(path: Path, folder: Path, x: np.ndarray) -> None:
    """Assert that ours are ONNX Runtime's."""
    (name,) = (port.name for port in compile_model(path).program.inputs)
    feeds = {name: x}
    with Session(build(path, folder)) as session:
        assert_same(session.run(feeds), reference_outputs(path, feeds))


def roots(program: Program) -> set[str]:
    """Storages of what is not constant."""
    constants = set(program.constants)
    return {program.root(name)[0] for name in program.tensors} - constants


def test_a_foreign_operator_overwrites_nothing(tmp_path: Path) -> None:
    between = "h = MeanVarianceNormalization<axes=[1]>(a)"
    path = saved(tmp_path, f"(float[8,10] x) => (y) {{ a = Abs(x) {between} y = Neg(h) }}")
    program = compile_model(path).program
    (foreign,) = (step for step in program.steps if isinstance(step.operator, External))
    assert program.root(foreign.inputs[0])[0] != program.root(foreign.outputs[0])[0]
    x = np.random.default_rng(0).standard_normal((8, 10)).astype(np.float32)
    outputs_of(path, tmp_path, x)


def test_an_activation_of_two_operators_takes_one_storage(tmp_path: Path) -> None:
    gated = "(float[256,256] x) => (y) { a = Abs(x) s = Sigmoid(a) y = Mul(a, s) }"
    compiled = compile_model(saved(tmp_path, gated))
    assert compiled.source.problem.lower_bound == 256 * 256 * 4
    assert len(roots(compiled.program)) == 1


QUANTISED = {
    "leaky relu": "QLinearLeakyRelu<alpha=0.1>(q, s, z, s, z)",
    "sigmoid": "QLinearSigmoid(q, s, z, s, z)",
    "mul": "QLinearMul(q, s, z, q, s, z, s, z)",
    "add": "QLinearAdd(q, s, z, q, s, z, s, z)",
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", QUANTISED)
def test_a_function_of_integers_takes_one_storage(name: str, dtype: str, tmp_path: Path) -> None:
    text = (
        f"({dtype}[1,64,8,8] q) => (y) <float s = {{0.05}}, {dtype} z = {{3}}> "
        f"{{ y = com.microsoft.{QUANTISED[name]} }}"
    )
    compiled = compile_model(saved(tmp_path, text, microsoft=True))
    (record,) = compiled.source.problem.records
    assert record.size == prod((1, 64, 8, 8))


def test_a_slice_of_the_outermost_axis_is_no_copy(tmp_path: Path) -> None:
    text = (
        "(float[8,256] x) => (y) <int64[1] b = {2}, int64[1] e = {4}, int64[1] z = {0}> "
        "{ a = Abs(x) s = Slice(a, b, e, z) y = Neg(s) }"
    )
    path = saved(tmp_path, text)
    program = compile_model(path).program
    (cut,) = (step for step in program.steps if len(step.reads) == 1 and "s" in step.writes)
    assert program.root("s") == (program.root(cut.inputs[0])[0], 2 * 256 * 4)
    x = np.random.default_rng(0).standard_normal((8, 256)).astype(np.float32)
    outputs_of(path, tmp_path, x)


WIDE = "(float[1,4,12,12] x) => (y, g) <float[{wide},4,3,3] w, float[{thin},4,3,3] t, "
WIDE += "float[2,{all},3,3] v> {{ g = Conv<pads=[1,1,1,1]>(x, t) "
WIDE += "c = Conv<pads=[1,1,1,1]>(x, w) r = Relu(c) j = Concat<axis=1>({joined}) y = Conv(j, v) }}"


@pytest.mark.parametrize("joined", ["g, r", "r, g"])
def test_channels_are_joined_in_the_place_of_the_widest(joined: str, tmp_path: Path) -> None:
    """Stored channels last the joined tensor is no run of bytes of each, but rows of them."""
    text = WIDE.format(wide=16, thin=1, all=17, joined=joined)
    path = save(tmp_path, with_random_weights(parse(text)))
    compiled = compile_model(path)
    assert compiled.program.root("c") == compiled.program.root("j")
    x, g, j = (prod(shape) * 4 for shape in ((4, 12, 12), (12, 12), (17, 12, 12)))
    assert compiled.source.problem.lower_bound == x + g + j
    assert_agrees(path, tmp_path)


SKIPPED = "(float[1,4,12,12] x) => (y) <float[8,4,3,3] w, float[10,8,3,3] m, float[2,10,3,3] n, "
SKIPPED += "float[8,2,3,3] t, float[2,16,3,3] v> {{ g = Conv<pads=[1,1,1,1]>(x, w) "
SKIPPED += "d = Conv<pads=[1,1,1,1]>(g, m) e = Conv<pads=[1,1,1,1]>(d, n) "
SKIPPED += "u = Conv<pads=[1,1,1,1]>(e, t) j = Concat<axis=1>({joined}) y = Conv(j, v) }}"


@pytest.mark.parametrize("joined", ["g, u", "u, g"])
def test_of_two_as_wide_the_one_that_lives_shorter_makes_place(
    joined: str, tmp_path: Path
) -> None:
    """All of the joined tensor would live as long as what skips the steps between."""
    path = save(tmp_path, with_random_weights(parse(SKIPPED.format(joined=joined))))
    compiled = compile_model(path)
    assert compiled.program.root("u") == compiled.program.root("j")
    assert compiled.program.root("g")[0] != compiled.program.root("j")[0]
    assert compiled.source.problem.lower_bound == (8 + 2 + 16) * 12 * 12 * 4
    assert_agrees(path, tmp_path)


def test_channels_that_are_read_again_are_joined_by_copying(tmp_path: Path) -> None:
    text = WIDE.replace("y = Conv(j, v)", "d = Conv(j, v) e = ReduceMax(r) y = Add(d, e)")
    path = save(tmp_path, with_random_weights(parse(text.format(wide=16, thin=1, all=17,
                                                                joined="r, g"))))  # fmt: skip
    program = compile_model(path).program
    assert program.root("c")[0] != program.root("j")[0]
    assert_agrees(path, tmp_path)


def test_rows_are_joined_in_place_along_any_axis_of_any_type(tmp_path: Path) -> None:
    text = (
        "(int64[3,2,5] x) => (y) <int64[3] n = {1, 2, 1}> "
        "{ a = Abs(x) b = Tile(a, n) c = Concat<axis=1>(a, b, a) y = Neg(c) }"
    )
    path = saved(tmp_path, text)
    program = compile_model(path).program
    assert program.root("b") == program.root("c")
    assert_agrees(path, tmp_path, tolerance=1e-4)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    "bounds",
    ["low, high", "low", ", high", ""],
    ids=["both", "from below", "from above", "not at all"],
)
def test_integers_are_clipped_by_integers(bounds: str, dtype: str, tmp_path: Path) -> None:
    operands = f"x, {bounds}" if bounds else "x"
    text = (
        f"({dtype}[6] x) => (y) <{dtype} low = {{16777217}}, {dtype} high = {{2147483000}}> "
        f"{{ y = Clip({operands}) }}"
    )
    x = np.array([0, 16777216, 16777217, 16777218, 2147483000, 2147483647], dtype)
    outputs_of(saved(tmp_path, text), tmp_path, x)


def test_names_that_the_lowering_would_give_may_be_taken(tmp_path: Path) -> None:
    """`q/signed` and `.../source` are names of its own for the integers of `q`."""
    text = (
        "(float[1,2,4,4] x) => (y) <float s = {0.05}, uint8 z = {128}, int64[8] p = "
        "{0,0,1,1,0,0,1,1}, float[2] k = {1, 2}> { q = QuantizeLinear(x, s, z) "
        "d = DequantizeLinear(q, s, z) o = Pad(d, p) r = QuantizeLinear(o, s, z) "
        "e = DequantizeLinear(r, s, z) t = Flatten(x) g = Abs(x) "
        "n = Neg(g) m = ReduceMax<keepdims=1>(n) y = Add(e, m) }"
    )
    model = parse(text, opset=13)
    taken = {"g": "q/signed", "n": "r/signed/source", "m": "r/source"}
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [taken.get(name, name) for name in names]
    path = save(tmp_path, model)
    x = np.random.default_rng(0).uniform(-2, 2, (1, 2, 4, 4)).astype(np.float32)
    outputs_of(path, tmp_path, x)
