"""A model read once for a range of sizes is the model read for each size."""

import math
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from arenite.planner.errors import BindingError, ModelError, SizeError
from arenite.planner.importers import load
from arenite.planner.importers.onnx import TensorType, numpy_dtype
from arenite.planner.importers.onnx.node import Operand, input_name, single_node_model
from arenite.planner.importers.onnx.sized import number_at
from arenite.planner.programs.program import Array, Program
from arenite.planner.sizes import Dimension, at, depends
from arenite.planner.tensors import DType, Tensor, TensorKind
from support.shared_material import shared
from support.tiny_onnx import parse, read_text, save, with_random_weights

N, M = Dimension("n", 1, 9), Dimension("m", 2, 6)
EVEN = Dimension("n", 8, 40, 8)


def assert_same_at_each_size(ranged: Program, fixed: list[tuple[dict[str, int], Program]]) -> None:
    """Compare the shapes of all tensors; those read for one size only may be folded away."""
    for sizes, program in fixed:
        common = ranged.tensors.keys() & program.tensors.keys()
        assert {*program.output_tensors, *program.input_tensors} <= common
        for name in common:
            shape = tuple(at(length, sizes) for length in ranged.tensors[name].shape)
            assert shape == program.tensors[name].shape, (name, sizes)
            assert ranged.tensors[name].dtype is program.tensors[name].dtype


def points(dimensions: tuple[Dimension, ...]) -> list[dict[str, int]]:
    """Return five combinations of values, the ends among them."""
    return [
        {each.name: each.low + len(each) * part // 5 * each.step for each in dimensions}
        if part < 5
        else {each.name: each.high for each in dimensions}
        for part in (0, 1, 2, 3, 5)
    ]


RULES = {
    "element-wise": "(float[n,4] x, float[4] b) => (float[n,4] y) { t = Add(x, b) y = Relu(t) }",
    "broadcast of a dimension": "(float[n,1] x, float[1,m] b) => (float[n,m] y) { y = Mul(x, b) }",
    "where": "(bool[n,1] c, float[1,m] x, float[n,m] z) => (float[n,m] y) { y = Where(c, x, z) }",
    "convolution": "(float[1,2,n,m] x, float[3,2,3,3] w) => (float[1,3,a,b] y) "
    "{ y = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w) }",
    "convolution of the same size": "(float[1,2,n,m] x, float[3,2,3,3] w) => (float[1,3,a,b] y) "
    '{ y = Conv<auto_pad="SAME_UPPER", strides=[2,3]>(x, w) }',
    "dilated convolution": "(float[1,2,n] x, float[3,2,2] w) => (float[1,3,a] y) "
    "{ y = Conv<pads=[2,1], dilations=[2]>(x, w) }",
    "transposed convolution": "(float[1,2,n,m] x, float[2,3,3,3] w) => (float[1,3,a,b] y) "
    "{ y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,0]>(x, w) }",
    "pool": "(float[1,2,n,m] x) => (float[1,2,a,b] y) "
    "{ y = MaxPool<kernel_shape=[2,2], strides=[2,2], pads=[1,0,0,0], ceil_mode=1>(x) }",
    "global pool": "(float[1,2,n,m] x) => (float[1,2,1,1] y) { y = GlobalAveragePool(x) }",
    "product": "(float[m,n,4] x, float[4,5] w) => (float[m,n,5] y) { y = MatMul(x, w) }",
    "product of two": "(float[2,n,4] x, float[2,4,n] w) => (float[2,n,n] y) { y = MatMul(x, w) }",
    "gemm": "(float[4,n] x, float[5,4] w) => "
    "(float[n,5] y) { y = Gemm<transA=1, transB=1>(x, w) }",
    "reshape to -1": "(float[n,4,m] x) => (float[a,2] y) <int64[2] s = {-1, 2}> "
    "{ y = Reshape(x, s) }",
    "reshape that copies": "(float[n,4,m] x) => (float[n,2,a] y) <int64[3] s = {0, 2, -1}> "
    "{ y = Reshape(x, s) }",
    "flatten": "(float[n,4,m] x) => (float[n,a] y) { y = Flatten(x) }",
    "axes of length 1": "(float[n,1,m] x) => "
    "(float[n,1,m] y) <int64[1] a = {1}, int64[1] b = {-2}> "
    "{ t = Squeeze(x, a) y = Unsqueeze(t, b) }",
    "tile": "(float[n,4] x) => (float[a,8] y) <int64[2] r = {3, 2}> { y = Tile(x, r) }",
    "transpose": "(float[n,4,m] x) => (float[m,n,4] y) { y = Transpose<perm=[2,0,1]>(x) }",
    "concatenation": "(float[n,4] x, float[m,4] z) => "
    "(float[a,4] y) { y = Concat<axis=0>(x, z, x) }",
    "split": "(float[n,8] x) => (float[n,3] y, float[n,5] z) <int64[2] s = {3, 5}> "
    "{ y, z = Split<axis=1>(x, s) }",
    "slice": "(float[n,8] x) => (float[a,4] y) "
    "<int64[2] s = {1, -4}, int64[2] e = {9223372036854775807, 8}, int64[2] i = {2, 1}, "
    "int64[2] k = {0, 1}> { y = Slice(x, s, e, k, i) }".replace("k, i)", "k)"),
    "slice of the last": "(float[n,8] x) => (float[1,8] y) <int64[1] s = {-1}, "
    "int64[1] e = {9223372036854775807}, int64[1] k = {0}> { y = Slice(x, s, e, k) }",
    "slice with steps": "(float[n,8] x) => (float[a,4] y) <int64[2] s = {0, 0}, "
    "int64[2] e = {2147483647, 8}, int64[2] k = {0, 1}, int64[2] i = {3, 2}> "
    "{ y = Slice(x, s, e, k, i) }",
    "slice backwards": "(float[n,8] x) => (float[n,8] y) <int64[1] s = {-1}, "
    "int64[1] e = {-9223372036854775807}, int64[1] k = {0}, int64[1] i = {-1}> "
    "{ y = Slice(x, s, e, k, i) }",
    "gather": "(float[n,4,m] x, int64[2,3] i) => (float[n,2,3,m] y) { y = Gather<axis=1>(x, i) }",
    "gather by a dimension": "(float[30,4] x, int64[n,m] i) => "
    "(float[n,m,4] y) { y = Gather(x, i) }",
    "gather elements": "(float[n,4] x, int64[n,2] i) => (float[n,2] y) "
    "{ y = GatherElements<axis=1>(x, i) }",
    "gather by coordinates": "(float[n,4,m] x, int64[5,2] i) => "
    "(float[5,m] y) { y = GatherND(x, i) }",
    "pad": "(float[n,m] x) => (float[a,b] y) <int64[4] p = {1, 0, 2, 3}> { y = Pad(x, p) }",
    "resize by scales": "(float[1,1,n,m] x) => (float[1,1,a,b] y) "
    "<float[4] s = {1, 1, 2, 0.5}> { y = Resize(x, , s) }",
    "reduction": "(float[n,4,m] x) => (float[n,1,m] y, float[n,4] z) <int64[1] a = {-1}> "
    "{ y = ReduceMean<axes=[1]>(x) z = ReduceSum<keepdims=0>(x, a) }",
    "place of the largest": "(float[n,4,m] x) => (int64[n,m] y) "
    "{ y = ArgMax<axis=1, keepdims=0>(x) }",
    "softmax": "(float[n,m] x) => (float[n,m] y) { y = Softmax(x) }",
    "normalisation": "(float[n,4] x, float[4] s, float[4] b) => (float[n,4] y) "
    "{ y = LayerNormalization(x, s, b) }",
    "lstm": "(float[n,m,4] x, float[1,12,4] w, float[1,12,3] r) => (float[n,1,m,3] y, "
    "float[1,m,3] h, float[1,m,3] c) { y, h, c = LSTM<hidden_size=3>(x, w, r) }",
    "largest ones": "(float[n,8] x) => (float[n,3] y, int64[n,3] i) <int64[1] k = {3}> "
    "{ y, i = TopK(x, k) }",
    "cumulative sum": "(float[n,4] x) => (float[n,4] y) <int64 a = {0}> { y = CumSum(x, a) }",
    "scatter": "(float[n,4] x, int64[1,2] i, float[1] u) => "
    "(float[n,4] y) { y = ScatterND(x, i, u) }",
    "triangle": "(float[n,m] x) => (float[n,m] y) { y = Trilu(x) }",
    "einsum": "(float[n,m] x, float[m,4] w) => "
    '(float[n,4] y) { y = Einsum<equation="ij,jk->ik">(x, w) }',
    "rows to channels": "(float[1,4,n,m] x) => (float[1,1,a,b] y) "
    "{ y = DepthToSpace<blocksize=2>(x) }",
    "one hot": "(int64[n,m] x) => (float[n,5,m] y) <int64[1] d = {5}, float[2] v = {0, 1}> "
    "{ y = OneHot<axis=1>(x, d, v) }",
    "boxes": "(float[1,n,4] b, float[1,2,n] s) => (int64[a,3] y) <int64 k = {4}> "
    "{ y = NonMaxSuppression(b, s, k) }",
    "places that are not zero": "(float[n,m] x) => (int64[2,a] y) { y = NonZero(x) }",
    "quantisation": "(float[n,m] x) => (float[n,m] y) <float s = {0.5}, uint8 z = {3}> "
    "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
    "dynamic quantisation": "(float[n,m] x) => (uint8[n,m] y, float s, uint8 z) "
    "{ y, s, z = DynamicQuantizeLinear(x) }",
    # Values
    "shape chain": "(float[n,4,m] x) => (float[m,a] y) <int64 one = {2}, int64[1] rest = {-1}, "
    "int64[1] z = {0}> { s = Shape(x) g = Gather(s, one) u = Unsqueeze(g, z) "
    "c = Concat<axis=0>(u, rest) y = Reshape(x, c) }",
    "half of a length": "(float[n,8] x) => (float[a,8] y) <int64 zero = {0}, int64 two = {2}, "
    "int64[1] z = {0}> { s = Shape(x) g = Gather(s, zero) h = Div(g, two) r = Sub(g, h) "
    "e = Unsqueeze(r, z) y = Slice(x, z, e, z) }",
    "rounding in floating point": "(float[n,8] x) => (float[a,8] y) <int64 zero = {0}, "
    "float three = {3}, int64[1] z = {0}> { s = Shape(x) g = Gather(s, zero) f = Cast<to=1>(g) "
    "q = Div(f, three) h = Ceil(q) i = Cast<to=7>(h) e = Unsqueeze(i, z) y = Slice(x, z, e, z) }",
    "expand with -1": "(float[n,1,4] x) => (float[n,3,4] y) <int64[3] w = {-1, 3, -1}, "
    "int64[1] three = {3}, int64 minus = {-1}> { "
    "one = ConstantOfShape<value = int64[1] {1}>(three) e = Equal(w, minus) "
    "t = Where(e, one, w) y = Expand(x, t) }",
    "expand to another's length": "(float[1,4] x, float[n,4] z) => (float[n,4] y) "
    "<int64[2] w = {-1, -1}, int64 minus = {-1}> { s = Shape(z) e = Equal(w, minus) "
    "t = Where(e, s, w) y = Expand(x, t) }",
    "number of elements": "(float[n,4,m] x) => (float[a] y) <int64[1] z = {0}> "
    "{ s = Shape(x) p = ReduceProd(s) y = Reshape(x, p) }",
    "sizes of another": "(float[1,2,n,m] x, float[1,2,a,b] z) => (float[1,2,a,b] y) "
    "<float[4] f = {1, 1, 2, 2}, int64[1] o = {0}, int64[1] t = {2}, int64[1] k = {4}> "
    "{ s = Shape(x) head = Slice(s, o, t) w = Resize(x, , f) v = Shape(w) tail = Slice(v, t, k) "
    "c = Concat<axis=0>(head, tail) y = Resize(x, , , c) }".replace(", float[1,2,a,b] z", ""),
    # Constants that depend on sizes
    "positions": "(float[n,4] x) => (float[n,4] y) <int64 zero = {0}, int64 one = {1}, "
    "int64[1] z = {1}> { s = Shape(x) g = Gather(s, zero) r = Range(zero, g, one) "
    "f = Cast<to=1>(r) u = Unsqueeze(f, z) y = Add(x, u) }",
    "rows of a table": "(float[n,4] x) => (float[n,4] y) <float[12,4] w, int64[1] z = {0}, "
    "int64[1] o = {1}> { s = Shape(x) e = Slice(s, z, o) t = Slice(w, z, e, z) y = Add(x, t) }",
    "zeros": "(float[n,4] x) => "
    "(float[n,4] y) { s = Shape(x) c = ConstantOfShape(s) y = Add(x, c) }",
}


def read_at(folder: Path, text: str, dims: dict[str, Dimension]) -> None:
    text = text.replace("float[12,4] w", f"float[12,4] w = {{{', '.join(['1'] * 48)}}}")
    ranged = read_text(folder, text, dims=dims)
    inputs = [ranged.tensors[name].shape for name in ranged.input_tensors]
    assert any(depends(length) for shape in inputs for length in shape)
    fixed = [(p, read_text(folder, text, dims=p)) for p in points(tuple(dims.values()))]
    assert_same_at_each_size(ranged, fixed)
    assert {*ranged.dimensions} == {*dims.values()}


@pytest.mark.parametrize("text", RULES.values(), ids=RULES)
def test_each_operator_has_lengths_for_all_sizes(text: str, tmp_path: Path) -> None:
    names = [each for each in (N, M) if f"{each.name}," in text or f"{each.name}]" in text]
    dims = {each.name: each for each in names if _is_input(text, each.name)}
    read_at(tmp_path, text, dims)


def _is_input(text: str, name: str) -> bool:
    inputs = text.split("=>")[0]
    return f"[{name}" in inputs or f",{name}" in inputs


DATA = {
    "a length as a number": "(float[n,4] x) => (float[n,4] y) <int64 zero = {0}, "
    "float[1] one = {1}> { s = Shape(x) g = Gather(s, zero) f = Cast<to=1>(g) "
    "d = Div(one, f) y = Mul(x, d) }",
    "lengths as numbers": "(float[n,2] x, float[m,2] z) => (float[n,2] y) "
    "<int64[1] zero = {0}> { s = Shape(x) a = Gather(s, zero) t = Shape(z) b = Gather(t, zero) "
    "c = Concat<axis=0>(a, b) f = Cast<to=1>(c) y = Mul(x, f) }",
    "half a length": "(float[n,2] x) => (float[n,2] y) <int64 zero = {0}, float half = {0.5}> "
    "{ s = Shape(x) g = Gather(s, zero) f = Cast<to=1>(g) h = Mul(f, half) y = Mul(x, h) }",
    "positions of a cache": "(float[n,4] x, float[m,4] z) => (float[m,4] y) "
    "<int64 zero = {0}, int64 one = {1}, int64[1] k = {1}, float[32,4] w> { s = Shape(x) "
    "a = Gather(s, zero) t = Shape(z) b = Gather(t, zero) c = Add(a, b) r = Range(a, c, one) "
    "e = Gather(w, r) y = Add(z, e) }",
    "mask of what is to come": "(float[n,n] x) => (float[n,n] y) "
    "<int64 zero = {0}, int64 one = {1}, int64[1] k = {0}, int64[1] j = {1}, float low = {-9}> "
    "{ s = Shape(x) a = Gather(s, zero) r = Range(zero, a, one) rows = Unsqueeze(r, j) "
    "columns = Unsqueeze(r, k) m = Greater(columns, rows) y = Where(m, low, x) }",
    "mask of a length": "(float[n,4] x) => (float[n,4] y) <int64 zero = {0}, int64 one = {1}, "
    "int64 three = {3}, int64[1] j = {1}, float low = {-9}> { s = Shape(x) a = Gather(s, zero) "
    "r = Range(zero, a, one) b = Sub(a, three) c = Unsqueeze(r, j) m = Less(c, b) "
    "y = Where(m, x, low) }",
    "corner of a table": "(float[n,m] x) => (float[n,m] y) "
    "<float[12,12] w, int64[2] z = {0, 0}, int64[2] k = {0, 1}> "
    "{ s = Shape(x) t = Slice(w, z, s, k) y = Add(x, t) }",
    "a window of a table": "(float[n,4] x) => (float[n,4] y) <float[20,4] w, int64[1] z = {0}, "
    "int64[1] o = {1}, int64[1] nine = {9}> { s = Shape(x) e = Slice(s, z, o) a = Sub(nine, e) "
    "t = Slice(w, a, nine, z) y = Add(x, t) }",
    "a triangle": "(float[n,n] x) => (float[n,n] y) "
    "{ s = Shape(x) o = ConstantOfShape<value = float[1] {1}>(s) t = Trilu<upper=0>(o) "
    "y = Mul(x, t) }",
    "angles": "(float[n,6] x) => (float[n,6] y) <int64 zero = {0}, int64 one = {1}, "
    "int64[1] j = {1}, float[1,3] f = {1, 0.5, 0.25}> { s = Shape(x) a = Gather(s, zero) "
    "r = Range(zero, a, one) c = Cast<to=1>(r) u = Unsqueeze(c, j) v = MatMul(u, f) "
    "w = Concat<axis=1>(v, v) q = Cos(w) y = Mul(x, q) }",
    "places of a grid": "(float[1,2,n,m] x) => (float[a,2] y) <int64 two = {2}, "
    "int64 three = {3}, "
    "float unit = {1}, float half = {0.5}, int64[1] last = {2}, "
    "int64[1] minus = {-1}, int64[1] one = {1}, int64[2] flat = {-1, 2}> { s = Shape(x) "
    "none = Constant<value_float=0.0>() gr = Gather(s, two) gc = Gather(s, three) "
    "fr = Cast<to=1>(gr) fc = Cast<to=1>(gc) "
    "r = Range(none, fr, unit) c = Range(none, fc, unit) r2 = Add(r, half) c2 = Add(c, half) "
    "br = Unsqueeze(gr, minus) bc = Unsqueeze(gc, minus) grid = Concat<axis=0>(br, bc) "
    "column = Unsqueeze(r2, one) rows = Expand(column, grid) columns = Expand(c2, grid) "
    "u = Unsqueeze(rows, last) v = Unsqueeze(columns, last) w = Concat<axis=2>(v, u) "
    "places = Reshape(w, flat) d = ReduceSum<keepdims=0>(x, one) "
    "e = Reshape(d, minus) f = Unsqueeze(e, one) y = Mul(places, f) }",
    "the last element": "(float[n,4] x) => (float[4] y) <int64 zero = {0}, int64 one = {1}> "
    "{ s = Shape(x) a = Gather(s, zero) b = Sub(a, one) y = Gather(x, b) }",
}
NOT_COMPUTED = {"boxes", "places that are not zero", "one hot", "quantisation"}
"""Results of as many elements as data say, and what the reference of onnx does not compute."""


def arrays_at(ranged: Program, sizes: dict[str, int], feeds: dict[str, Array]) -> dict[str, Array]:
    """Compute all tensors of a program at some sizes, step by step.

    Of a constant whose lengths depend on dimensions the first bytes are used.
    """
    found = dict(feeds)
    for name, tensor in ranged.tensors.items():
        if tensor.kind is TensorKind.CONSTANT:
            dtype, array = numpy_dtype(tensor.dtype), ranged.constants[name]
            shape = tuple(at(length, sizes) for length in tensor.shape)
            if array.dtype == object:
                array = np.array([number_at(each, sizes) for each in array.flat], dtype)
            found[name] = array.ravel()[: math.prod(shape)].reshape(shape)
    for step in ranged.steps:
        origin = step.operator.origin
        operands = [Operand(name, type_of(found[name]) if name else None) for name in step.inputs]
        model = single_node_model(origin.node, origin.dialect, operands, {})
        given = {input_name(p): found[name] for p, name in enumerate(step.inputs) if name}
        results = ReferenceEvaluator(model).run(None, given)
        found.update(zip(filter(None, step.outputs), map(np.asarray, results), strict=True))
    return found


def type_of(array: Array) -> TensorType:
    dtype = next(each for each in DType if each.label == array.dtype.name)
    return TensorType(dtype, array.shape)


@pytest.mark.parametrize("case", [*DATA, *(each for each in RULES if each not in NOT_COMPUTED)])
def test_values_are_those_of_each_size(case: str, tmp_path: Path) -> None:
    text = {**RULES, **DATA}[case]
    dims = {each.name: each for each in (N, M) if _is_input(text, each.name)}
    model = with_random_weights(parse(text))
    assert_right_at_each_size(model, save(tmp_path, model), dims)


def assert_right_at_each_size(
    model: onnx.ModelProto, path: Path, dims: dict[str, Dimension]
) -> None:
    generator = np.random.default_rng(0)
    ranged = load(path, dims=dims, weights=True)
    for sizes in points(tuple(dims.values())):
        feeds = {
            name: drawn(generator, ranged.tensors[name], sizes) for name in ranged.input_tensors
        }
        found = arrays_at(ranged, sizes, feeds)
        expected = ReferenceEvaluator(model).run(None, feeds)
        for name, array in zip(ranged.output_tensors, expected, strict=True):
            np.testing.assert_array_equal(found[name], array)


def drawn(generator: np.random.Generator, tensor: Tensor, sizes: dict[str, int]) -> Array:
    shape = tuple(at(length, sizes) for length in tensor.shape)
    if tensor.dtype is DType.FLOAT32:
        return generator.standard_normal(shape).astype(np.float32)
    most = 2 if tensor.dtype is DType.BOOL else 1
    return generator.integers(0, most, shape).astype(numpy_dtype(tensor.dtype))


def test_lengths_equal_at_the_highest_sizes_alone_share_nothing(tmp_path: Path) -> None:
    text = """(float[n,4] x, float[m,4] z) => (float[a,4] y)
        <int64[1] k = {0}, int64[1] one = {1}> {
        s = Shape(z) e = Slice(s, k, one) t = Slice(x, k, e, k) y = Relu(t) }"""
    program = read_text(tmp_path, text, dims={"n": N, "m": Dimension("m", 1, 9)})
    assert program.tensors["t"].alias is None
    assert read_text(tmp_path, text, dims={"n": 9, "m": 9}).tensors["t"].alias is not None


KINDS = ("conv", "pool", "pad", "slice", "join", "cut", "half", "turn", "resize", "flat", "mask",
         "wide")  # fmt: skip


def random_chain(rng: random.Random) -> str:
    """Return a graph of an image whose sides vary, of random operators and shape arithmetic."""
    lines, current = [], "x"
    for number in range(rng.randint(3, 8)):
        new, kind = f"t{number}", rng.choice(KINDS)
        axis = rng.choice([2, 3])
        if kind == "conv":
            stride, pad = rng.randint(1, 2), rng.randint(1, 2)
            lines.append(f"{new} = Conv<pads=[{pad},{pad},{pad},{pad}], strides=[{stride},1], "
                         f"kernel_shape=[3,3]>({current}, w)")  # fmt: skip
        elif kind == "pool":
            lines.append(f"{new} = MaxPool<kernel_shape=[2,2], strides=[2,1], pads=[1,1,0,0], "
                         f"ceil_mode={rng.randint(0, 1)}>({current})")  # fmt: skip
        elif kind == "pad":
            lines.append(f"{new} = Pad({current}, pads)")
        elif kind == "slice":
            lines.append(f"k{number} = Constant<value_ints=[{axis}]>()")
            ends = rng.choice(["big", "minus"])
            lines.append(
                f"{new} = Slice({current}, {rng.choice(['zero', 'one'])}, {ends}, k{number})"
            )
        elif kind == "join":
            lines.append(f"{new} = Concat<axis={axis}>({current}, {current})")
        elif kind in ("cut", "half"):  # to a half, rounded up
            lines += [
                f"s{number} = Shape({current})",
                f"k{number} = Constant<value_ints=[{axis}]>()",
                f"g{number} = Gather(s{number}, k{number})",
                f"h{number} = Div(g{number}, two)",
                f"r{number} = Sub(g{number}, h{number})",
                f"{new} = Slice({current}, {'zero' if kind == 'cut' else f'h{number}'}, "
                f"{f'r{number}' if kind == 'cut' else 'big'}, k{number})",
            ]
        elif kind == "turn":
            lines.append(f"{new} = Transpose<perm=[0,1,3,2]>({current})")
        elif kind == "resize":
            lines.append(f'{new} = Resize<mode="nearest", coordinate_transformation_mode='
                         f'"asymmetric", nearest_mode="floor">({current}, , scales)')  # fmt: skip
        elif kind == "flat":  # and back, by the shape
            lines += [
                f"s{number} = Shape({current})",
                f"f{number} = Reshape({current}, flat)",
                f"{new} = Reshape(f{number}, s{number})",
            ]
        else:  # by what depends on the length alone
            lines += [
                f"s{number} = Shape({current})",
                f"k{number} = Constant<value_int={axis}>()",
                f"g{number} = Gather(s{number}, k{number})",
                f"p{number} = Range(none, g{number}, unit)",
                f"a{number} = Cast<to=1>(p{number})",
            ]
            if kind == "mask":
                lines.append(f"d{number} = Cast<to=1>(g{number})")
                lines.append(f"c{number} = Div(a{number}, d{number})")
            else:
                lines.append(f"c{number} = Cos(a{number})")
            if axis == 2:
                lines.append(f"u{number} = Unsqueeze(c{number}, one)")
            lines.append(f"{new} = Mul({current}, {'u' if axis == 2 else 'c'}{number})")
        current = new
    return f"""(float[1,2,n,m] x) => (float[1,2,a,b] y) <float[2,2,3,3] w, int64[8] pads =
        {{0, 0, 1, 0, 0, 0, 0, 2}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] big =
        {{9223372036854775807}}, int64[1] minus = {{-1}}, int64[1] two = {{2}}, float[4] scales =
        {{1, 1, 2, 1.5}}, int64[1] flat = {{-1}}, int64 none = {{0}}, int64 unit = {{1}}> {{
        {chr(10).join(lines)}
        y = Identity({current}) }}"""


@pytest.mark.parametrize("seed", range(60))
def test_random_chains_are_those_of_each_size(seed: int, tmp_path: Path) -> None:
    model = with_random_weights(parse(random_chain(random.Random(seed))))
    path = save(tmp_path, model)
    dims = {"n": Dimension("n", 12, 33), "m": Dimension("m", 9, 41, 4)}
    assert_right_at_each_size(model, path, dims)


REFUSED = {
    "one length for two": (
        "(float[n,4] x, float[m,4] z) => (float[n,4] y) { y = Add(x, z) }",
        {"n": N, "m": Dimension("m", 5, 9)},
        r"operator 'Add_0' \(Add\): lengths n and m are equal at some sizes only",
    ),
    "a length of the export": (
        "(float[n,4] x) => (float[9,4] y) <int64[2] s = {9, 4}> { y = Reshape(x, s) }",
        {"n": N},
        r"\(Reshape\): it makes 36 elements of 4\*n, as is possible at some sizes only",
    ),
    "another scale at each size": (
        "(float[1,1,n,4] x) => (float[1,1,12,4] y) <int64[4] s = {1, 1, 12, 4}> "
        "{ y = Resize(x, , , s) }",
        {"n": N},
        "its scale, 12 to n, is not the same at all sizes",
    ),
    "a filter that does not fit": (
        "(float[1,1,n] x, float[1,1,3] w) => (float[1,1,a] y) { y = Conv(x, w) }",
        {"n": N},
        r"operator 'Conv_0' \(Conv\): a window of 3 does not fit into the length n",
    ),
    "no rule": (
        "(float[n,4,1] x) => (float[n,4,2] y) { y = DFT<axis=1>(x) }",
        {"n": N},
        r"operator 'DFT_0' \(DFT\): no rule for the lengths of its results",
    ),
    "a broadcast that the highest size allows": (
        "(float[n,4] x, float[9,4] z) => (float[9,4] y) { y = Add(x, z) }",
        {"n": N},
        "lengths n and 9 are equal at some sizes only",
    ),
}


@pytest.mark.parametrize(("text", "dims", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_known_for_all_sizes_is_named(
    text: str, dims: dict[str, Dimension], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(SizeError, match=reason):
        read_text(tmp_path, text, dims=dims)


TWO = "(float[n,k] x, float[k] b) => (float[n,k] y) { y = Add(x, b) }"


def test_dimensions_are_those_in_use_in_order(tmp_path: Path) -> None:
    path = save(tmp_path, parse(TWO))
    program = load(path, shapes={"x": (Dimension("x:0", 1, 4), Dimension("width", 2, 6, 2))})
    assert [*map(str, program.dimensions)] == ["n=1..4", "width=2..6:2"]
    assert load(path, dims={"n": 3, "k": Dimension("k", 2, 2)}).dimensions == ()


def test_an_axis_without_a_name_goes_by_its_input(tmp_path: Path) -> None:
    model = parse("(float[n,4] x) => (float[n,4] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    path = save(tmp_path, model)
    for options in ({"shapes": {"x": (Dimension("", 1, 4), 4)}},
                    {"dims": {"x:0": Dimension("x:0", 1, 4)}}):  # fmt: skip
        program = load(path, **options)
        assert program.dimensions == (Dimension("x:0", 1, 4),)


def test_one_name_ties_lengths(tmp_path: Path) -> None:
    side = Dimension("side", 2, 6)
    program = load(save(tmp_path, parse(TWO)), dims={"n": side, "k": side})
    assert program.dimensions == (side,)
    assert [at(each, {"side": 3}) for each in program.tensors["y"].shape] == [3, 3]


def test_a_length_can_be_an_expression_of_others(tmp_path: Path) -> None:
    text = """(float[past,4] old, float[seq,4] x, float[total,4] m) => (float[total,4] y)
        { c = Concat<axis=0>(old, x) y = Add(c, m) }"""
    past, seq = Dimension("past", 0, 7), Dimension("seq", 1, 3)
    dims = {"past": past, "seq": seq, "total": past.size + seq.size}
    program = read_text(tmp_path, text, dims=dims)
    assert program.dimensions == (past, seq)
    assert at(program.tensors["m"].shape[0], {"past": 2, "seq": 3}) == 5
    tied = read_text(tmp_path, text, dims={**dims, "total": Dimension("total", 1, 10)})
    assert tied.tensors == program.tensors
    assert tied.dimensions == program.dimensions
    assert tied.notes[0] == "dimension 'total' is past + seq, as operators require"
    with pytest.raises(SizeError, match=r"if they are always, total has the range 1\.\.10"):
        read_text(tmp_path, text, dims={**dims, "total": Dimension("total", 4, 10)})
    with pytest.raises(BindingError, match="'total' is past \\+ seq, but 'past' has no range"):
        read_text(tmp_path, text, dims={**dims, "past": 7})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"dims": {"n": N}, "shapes": {"x": (4, 2)}}, "'n' cannot be both 4 and 1..9"),
        ({"shapes": {"x": (N, Dimension("n", 1, 8))}}, "'k' cannot be both n=1..9 and n=1..8"),
        ({"dims": {"n": N, "m": 3}}, "'m' is not a free dimension"),
        ({"dims": {"n": N}}, "free dimensions 'k'"),
    ],
)
def test_ranges_that_contradict_are_refused(
    options: dict[str, dict[str, object]], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=reason):
        load(save(tmp_path, parse(TWO)), **options)


def test_a_fixed_input_is_a_constant_of_all_sizes(tmp_path: Path) -> None:
    text = "(float[n,m] x, float[n,m] z) => (float[n,m] y) { t = Neg(z) y = Add(x, t) }"
    path = save(tmp_path, parse(text))
    program = load(path, dims={"n": N, "m": M}, values={"z": 2.0}, weights=True)
    sizes = {"n": 3, "m": 4}
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(arrays_at(program, sizes, {"x": x})["y"], x - 2)


def test_elements_are_looked_up_in_old_operator_sets(tmp_path: Path) -> None:
    model = with_random_weights(parse(DATA["a length as a number"], opset=9))
    assert_right_at_each_size(model, save(tmp_path, model), {"n": N})


BRANCHES = """(float[n,4] x, float[2] z) => (float[n,4] y)
    <int64 zero = {0}, int64 limit = {LIMIT}>
    { s = Shape(x) a = Gather(s, zero) c = Less(a, limit) y = If (c) <
        then_branch = g1 () => (float[n,4] p) { p = Relu(x) },
        else_branch = g2 () => (float[n,4] q) { q = Neg(x) }> }"""


@pytest.mark.parametrize(("limit", "taken"), [(10, "Relu"), (1, "Neg")])
def test_a_branch_that_all_sizes_take_is_taken(limit: int, taken: str, tmp_path: Path) -> None:
    text = BRANCHES.replace("LIMIT", str(limit))
    program = read_text(tmp_path, text, dims={"n": N})
    assert [step.operator.label for step in program.steps] == [taken]


def test_a_branch_that_some_sizes_take_says_where_to_split_the_range(tmp_path: Path) -> None:
    text = BRANCHES.replace("LIMIT", "5")
    with pytest.raises(SizeError, match=r"'If_\d' .*: a comparison of n and 5 differs among the "
                       "sizes; split the range of n before 5$"):  # fmt: skip
        read_text(tmp_path, text, dims={"n": N})
    low, high = Dimension("n", 1, 4), Dimension("n", 5, 9)
    labels = [read_text(tmp_path, text, dims={"n": each}).steps[0].operator.label
              for each in (low, high)]  # fmt: skip
    assert labels == ["Relu", "Neg"]


SUBGRAPHS = {
    "branch": """(float[n,4] x, bool c) => (float[n,4] y) { y = If (c) <
        then_branch = g1 () => (float[n,4] p) { p = Relu(x) },
        else_branch = g2 () => (float[n,4] q) { q = Neg(x) }> }""",
    "loop": """(float[n,4] x, int64 k, bool c) => (float[n,4] y) { y = Loop (k, c, x) <
        body = g (int64 i, bool d, float[n,4] p) => (bool e, float[n,4] q)
        { e = Identity(d) q = Relu(p) }> }""",
}


@pytest.mark.parametrize("text", SUBGRAPHS.values(), ids=SUBGRAPHS)
def test_subgraphs_that_stay_take_no_range(text: str, tmp_path: Path) -> None:
    with pytest.raises(SizeError, match="'x' depends on a dimension, which is unsupported inside"):
        read_text(tmp_path, text, dims={"n": N})


def test_subgraphs_beside_a_range_stay(tmp_path: Path) -> None:
    text = """(float[n,4] x, float[4] z, bool c) => (float[n,4] y) { t = If (c) <
        then_branch = g1 () => (float[4] p) { p = Relu(z) },
        else_branch = g2 () => (float[4] q) { q = Neg(z) }> y = Add(x, t) }"""
    program = read_text(tmp_path, text, dims={"n": N})
    assert [step.operator.label for step in program.steps] == ["If", "Add"]


def test_a_fixed_length_takes_no_range(tmp_path: Path) -> None:
    path = save(tmp_path, parse("(float[n,4] x) => (float[n,4] y) { y = Relu(x) }"))
    with pytest.raises(BindingError, match=r"has length 4 on axis 1, not 1\.\.4"):
        load(path, shapes={"x": (2, Dimension("", 1, 4))})


PAST, SEQ = Dimension("past", 0, 56), Dimension("seq", 1, 8)
REAL = {
    "text encoder": (
        "tr_vespa_dummy_transformer_mlm.onnx",
        {"batch": Dimension("batch", 1, 4), "tokens": Dimension("tokens", 1, 64)},
    ),
    "decoder of named states": (
        "tr_genai_tiny-random-lfm2-fp32_decoder.onnx",
        {
            "batch_size": Dimension("batch", 1, 2),
            "sequence_length": SEQ,
            "past_sequence_length": PAST,
            "total_sequence_length": PAST.size + SEQ.size,
        },
    ),
    "decoder with fused attention": (
        "tr_genai_tiny-random-gpt2-fp32_past.onnx",
        {"batch_size": 1, "seq_len": 1, "past_seq_len": PAST, "total_seq_len": PAST.size + 1},
    ),
    "lines of text": (
        "ppocr4_rec.onnx",
        {
            "p2o.DynamicDimension.0": Dimension("p2o.DynamicDimension.0", 1, 2),
            "x:2": 48,
            "p2o.DynamicDimension.1": Dimension("p2o.DynamicDimension.1", 32, 320, 8),
        },
    ),
    "landmarks": ("openseeface_lm_model0_opt.onnx", {"batch_size": Dimension("batch_size", 1, 4)}),
    "notes of music": ("basic_pitch.onnx", {"unk__749": Dimension("unk__749", 1, 4)}),
    "voice activity": (
        "silero_vad_16k_op15.onnx",
        {"batch": Dimension("batch", 1, 4), "sequence": 576},
    ),
}


@pytest.mark.parametrize(("file", "dims"), REAL.values(), ids=REAL)
def test_real_models_are_read_for_a_range(file: str, dims: dict[str, int | Dimension]) -> None:
    path = shared("models/onnx") / file
    ranged = load(path, dims=dims)
    varied = {each.name: each for each in dims.values() if isinstance(each, Dimension)}
    assert {*ranged.dimensions} == {*varied.values()}
    for sizes in points(tuple(varied.values()))[::2]:
        fixed = {
            name: sizes[each.name] if isinstance(each, Dimension) else at(each, sizes)
            for name, each in dims.items()
        }
        assert_same_at_each_size(ranged, [(sizes, load(path, dims=fixed))])
