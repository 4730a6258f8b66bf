"""C source for a range of sizes computes at each of them what source for that size alone does."""

import re
from dataclasses import replace

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.c import ALIASES, ALIGNMENT
from arenite.planner import Program
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.programs.rules import Rules
from arenite.planner.rewrites.derivation import derive
from arenite.planner.sizes import Dimension, Size, every_value
from arenite.runtime.cexport import (
    COptions,
    LoweredForC,
    NotExportedError,
    Rounding,
    lower_for_c,
    signed,
)
from arenite.runtime.cexport.base.ranges import SizeVariables, Symbol
from arenite.runtime.cexport.export import CExport, export_c
from arenite.runtime.cexport.steps import writer
from arenite.runtime.operators.elementwise import Unary
from arenite.strategies import find
from support.exported_c import Bands, Machine, compiled, drawn
from support.exported_c import exported as whole_export
from support.sized_programs import of_text, ranged
from support.tiny_onnx import parse, save, with_random_weights

N = Dimension("n", 3, 9)
STEPPED = Dimension("n", 4, 32, 4)

NETWORKS = {
    "convolutions": (N, """(float[1,3,$n,12] x) => (y)
        <float[8,3,3,3] w, float[8] b, float[4,8,1,1] v> {
        a = Conv<pads=[1,1,1,1]>(x, w, b) b2 = Relu(a)
        c = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b2) y = Conv(c, v) }"""),
    "several images": (N, """(float[$n,3,6,5] x) => (y) <float[4,3,3,3] w> {
        a = Conv<pads=[1,1,1,1]>(x, w) y = GlobalAveragePool(a) }"""),
    "means": (N, """(float[1,3,$n,12] x) => (y, z) {
        y = GlobalAveragePool(x) z = ReduceMean<axes=[2]>(x) }"""),
    "enlarged": (N, """(float[1,2,$n,4] x) => (y) <float[4] s = {1, 1, 2, 2}> {
        y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor">(x, , s) }"""),
    "blended": (N, """(float[1,2,$n,4] x) => (y) <float[4] s = {1, 1, 2, 2}> {
        y = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, , s) }"""),
    "encoder": (STEPPED, """(float[1,$n,8] x) => (y)
        <float[8,8] q, float[8,8] k, float[8,8] v, float[8] t, float[8] u,
        int64[4] heads = {0, 0, 2, 4}, int64[3] joined = {0, 0, 8}> {
        a = MatMul(x, q) b = MatMul(x, k) c = MatMul(x, v)
        d = Reshape(a, heads) e = Reshape(b, heads) f = Reshape(c, heads)
        g = Transpose<perm=[0,2,1,3]>(d) h = Transpose<perm=[0,2,3,1]>(e)
        i = Transpose<perm=[0,2,1,3]>(f)
        j = MatMul(g, h) k2 = Softmax<axis=-1>(j) l = MatMul(k2, i)
        m = Transpose<perm=[0,2,1,3]>(l) o = Reshape(m, joined) p = Add(o, x)
        y = LayerNormalization<axis=-1>(p, t, u) }"""),
    "words": (N, """(int64[1,$n] x, float[1,$n,4] z) => (y) <float[40,4] t> {
        a = Gather(t, x) y = Concat<axis=1>(a, z) }"""),
    "borders": (N, """(float[2,$n,8] x) => (y, z)
        <int64[6] p = {0,1,0,0,2,3}, int64[1] s = {-2}, int64[1] e = {100}, int64[1] a = {1}> {
        y = Pad(x, p) z = Slice(x, s, e, a) }"""),
    "last rows of a constant": (N, """(float[1,$n,4] x) => (y)
        <float[1,9,4] t, int64[1] nine = {9}, int64[1] one = {1}> {
        s = Shape(x) l = Gather(s, one) b = Sub(nine, l) c = Slice(t, b, nine, one)
        y = Add(c, x) }"""),
    "every second": (N, """(float[4,$n] x) => (y) <int64[1] s = {0}, int64[1] e = {100},
        int64[1] a = {1}, int64[1] t = {2}> { y = Slice(x, s, e, a, t) }"""),
    "bytes": (N, """(float[1,3,$n,12] x) => (y)
        <float s = {0.02}, int8 z = {3}, float q = {0.004}, int8 o = {0},
        int8[3,1,3,3] w, int8[4,3,1,1] v> {
        a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z) c = DequantizeLinear(w, q, o)
        d = Conv<group=3, pads=[1,1,1,1]>(b, c) e = QuantizeLinear(d, s, z)
        f = DequantizeLinear(e, s, z) g = DequantizeLinear(v, q, o) h = Conv(f, g)
        i = QuantizeLinear(h, s, z) y = DequantizeLinear(i, s, z) }"""),
}  # fmt: skip


def exported(model: Program, rounding: Rounding = "even") -> CExport:
    found = signed(lower_for_c(model))
    rules = Rules(ALIASES, alignment=ALIGNMENT)
    lowered = LoweredForC("network.onnx", "0" * 64, found.program, found.shifted, rules, rounding)
    made = lowered.compiled(derive(lowered.program, lowered.rules))
    return export_c(made, find("best")(made.source.problem), COptions())


@pytest.mark.parametrize("name", NETWORKS)
def test_all_sizes_have_the_bits_of_source_for_that_size(name, tmp_path):
    dimension, text = NETWORKS[name]
    export = exported(ranged(text, dimension))
    machine = Machine.of(export, compiled(export, tmp_path / "all", "-fsanitize=undefined"))
    values = every_value([dimension])["n"].tolist()
    for n in (values[-1], values[0], values[1], values[len(values) // 2], values[-1]):
        fixed = exported(of_text(text, {"n": n}))
        own = Machine.of(fixed, compiled(fixed, tmp_path / str(n)))
        inputs = {key: np.abs(each) if each.dtype.kind == "i" else each
                  for key, each in drawn(fixed, n).items()}  # fmt: skip
        expected, found = own.run(inputs), machine.run(inputs, {"n": n})
        for key, array in expected.items():
            np.testing.assert_array_equal(found[key], array)


BANDED = """(float[1,3,h,w] x) => (y, m)
    <float[16,3,3,3] a, float[16,16,3,3] b, float[8,16,3,3] c, float[4,8,1,1] d, float e = {0}> {
    p = Conv<pads=[1,1,1,1]>(x, a) q = Relu(p) r = Conv<pads=[1,1,1,1], strides=[2,2]>(q, b)
    s = Relu(r) t = Conv<pads=[1,1,1,1]>(s, c) u = Conv(t, d)
    y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(u) k = Greater(y, e) l = NonZero(k)
    m = Transpose<perm=[1,0]>(l) }"""


def test_turns_of_bands_follow_the_sizes_and_counts_of_a_run(tmp_path):
    path = save(tmp_path, with_random_weights(parse(BANDED)))
    dims = Reading({"h": Dimension("h", 4, 32), "w": Dimension("w", 4, 24)})
    bands = Bands(path, dims)
    export = bands.within(bands.least)
    assert b"run_turn(arena, turn, n_h, n_w, &n_l);" in export.files["tiny.c"]
    assert b"*tiny_input_x(uint8_t *arena, int32_t h, int32_t w)" in export.files["tiny.h"]
    machine = Machine.of(export, compiled(export, tmp_path / "all", "-fsanitize=undefined"))
    whole = whole_export(path, reading=dims)
    assert export.arena_bytes < whole.arena_bytes / 2
    own = Machine.of(whole, compiled(whole, tmp_path / "whole"))
    for h, w in ((32, 24), (4, 4), (5, 24), (17, 9), (30, 8), (31, 23)):
        sizes = {each.name: each.high for each in whole.interface.dimensions} | {"h": h, "w": w}
        (port,) = whole.interface.at(sizes).inputs
        x = np.random.default_rng(h).standard_normal(port.tensor.shape).astype(np.float32)
        expected, found = own.run({"x": x}, sizes), machine.run({"x": x}, sizes)
        assert expected["m"].size
        for key, array in expected.items():
            np.testing.assert_array_equal(found[key], array)


def test_two_dimensions_vary_apart(tmp_path):
    text = """(float[1,3,$h,$w] x) => (y) <float[4,3,3,3] k, float[4,4,1,1] v> {
        a = Conv<pads=[1,1,1,1]>(x, k) b = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)
        y = Conv(b, v) }"""
    height, width = Dimension("h", 4, 8, 2), Dimension("w", 4, 8, 2)
    export = exported(ranged(text, height, width))
    machine = Machine.of(export, compiled(export, tmp_path / "all", "-fsanitize=undefined"))
    for sizes in ({"h": 4, "w": 8}, {"h": 8, "w": 4}, {"h": 6, "w": 8}, {"h": 4, "w": 4}):
        fixed = exported(of_text(text, sizes))
        folder = tmp_path / "{h}x{w}".format(**sizes)
        own = Machine.of(fixed, compiled(fixed, folder))
        inputs = drawn(fixed, 1)
        (expected,), (found,) = own.run(inputs).values(), machine.run(inputs, sizes).values()
        np.testing.assert_array_equal(found, expected)


def test_each_axis_of_a_resize_is_proved_by_its_own_dimension(tmp_path):
    path = save(
        tmp_path,
        parse("""(float[1,2,h,w] x) => (y) <float[4] s = {1, 1, 2, 2}> {
        y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor">(x, , s) }"""),
    )
    # As pairs they have more values than can be tried.
    sizes = {"h": Dimension("h", 8, 1080), "w": Dimension("w", 8, 1920)}
    export = exported(read_onnx(path, dims=sizes, weights=True))
    assert b"_run(uint8_t *arena, int32_t h, int32_t w);" in export.files["network.h"]


def test_a_size_outside_its_range_or_between_its_steps_is_an_error(tmp_path):
    export = exported(ranged("(float[1,$n,8] x) => (y) { y = Relu(x) }", STEPPED))
    machine = Machine.of(export, compiled(export, tmp_path))
    address = machine.arena.ctypes.data
    before = machine.arena.copy()
    for size in (-4, 0, 3, 6, 33, 36, 2**31 - 1):
        assert machine.run_on(address, size) == 3
    assert np.array_equal(machine.arena, before)
    assert machine.run_on(None, 4) == 1
    assert machine.run_on(address, 8) == 0


def test_the_header_states_the_range_and_the_lengths_of_a_run():
    export = exported(ranged("(float[1,$n,8] x) => (y) { y = Relu(x) }", STEPPED))
    header = export.files["network.h"].decode()
    assert "int network_run(uint8_t *arena, int32_t n);" in header
    for line in ("LOW 4", "HIGH 32", "STEP 4"):
        assert f"#define NETWORK_SIZE_N_{line}\n" in header
    assert "#define NETWORK_INPUT_X_BYTES 1024\n" in header
    assert "float32 1x32x8 at the highest sizes. */" in header
    assert re.search(
        r"network_input_x_bytes\(int32_t n\)\n{\n[^}]*32 \* n;\n    return s0;", header
    )
    assert "dims[0] = 1;\n    dims[1] = n;\n    dims[2] = 8;\n" in header


def test_source_for_one_size_has_no_trace_of_sizes():
    text = "(float[1,$n,8] x) => (y) { y = Relu(x) }"
    export = exported(of_text(text, {"n": 32}))
    assert b"int network_run(uint8_t *arena)\n" in export.files["network.c"]
    assert b"SIZE" not in export.files["network.h"]


def test_what_cannot_vary_is_refused_by_name():
    text = """(float[1,2,$n,4] x) => (y) <float[4] s = {1, 1, 2, 2}> {
        y = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, , s) }"""
    why = "mode=linear of float32 is unsupported for a range of sizes"
    with pytest.raises(NotExportedError, match=rf"'Resize_0' \(Resize2D\): {why}"):
        exported(ranged(text, N), "double")


def test_a_writer_that_loses_an_expression_is_found(monkeypatch):
    lossless = writer.writers()[Unary]

    def loses(t):
        lossless(t)
        t.calls[:] = [re.sub("\x02.*?\x03", str(t.width), call) for call in t.calls]

    monkeypatch.setitem(writer._WRITERS, Unary, loses)
    text = "(float[1,$n] x) => (y) { y = Exp(x) }"
    exported(of_text(text, {"n": 5}))
    monkeypatch.setattr(writer.StepWriter, "width", property(lambda t: int(t.output().shape[-1])))
    with pytest.raises(NotExportedError, match=r"at n=3: it runs in another way"):
        exported(ranged(text, N))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (lambda n: (n - 7) // 2, lambda n: (n - 7) // 2),
        (lambda n: -((-n) // 4), lambda n: -((-n) // 4)),
        (lambda n: n * n - 3 * n, lambda n: n * n - 3 * n),
        (lambda n: (5 - n * n) // 3 + n, lambda n: (5 - n * n) // 3 + n),
    ],
)
def test_expressions_of_c_round_down(expression, value, tmp_path):
    size = N.size
    assert isinstance(size, Size)
    variables = SizeVariables([N], ["n"])
    name = variables.filled(str(expression(Symbol.of(size.expression, 9))))
    lines = "\n".join(variables.lines)
    for n in range(3, 10):
        scope = {"n": n}
        for statement in lines.splitlines():
            target, text = re.fullmatch(r"const int32_t (\w+) = (.*);", statement).groups()
            scope[target] = _of_c(text, scope)
        assert scope[name] == value(n)


def _of_c(text, scope):
    choice = re.fullmatch(r"(.+?) \? (.+) : (.+)", text)
    if choice:
        return _of_c(choice[2] if eval(choice[1], {}, scope) else choice[3], scope)
    return eval(re.sub("/", "//", text), {}, scope)


def test_a_size_beyond_32_bits_is_refused():
    with pytest.raises(NotExportedError, match=r"beyond 32 bits"):
        exported(_huge())


def _huge() -> Program:
    model = ranged("(float[1,$n,8] x) => (y) { y = Transpose<perm=[0,2,1]>(x) }", N)
    factor = 1 << 28
    tensors = {
        name: replace(each, shape=tuple(n * factor if n == 8 else n for n in each.shape))
        for name, each in model.tensors.items()
    }
    return replace(model, tensors=tensors)
