"""Graphs in the text form of onnx whose lengths n and m are those of ranges."""

import random

import numpy as np

from arenite.planner.importers.onnx import numpy_dtype
from arenite.planner.programs.program import Array
from arenite.planner.sizes import Dimension, at
from arenite.planner.tensors import DType, Tensor

N, M = Dimension("n", 1, 9), Dimension("m", 2, 6)


def dimensions_of(text: str) -> dict[str, Dimension]:
    """Return the ranges of the lengths of a graph's inputs."""
    inputs = text.split("=>")[0]
    return {
        each.name: each
        for each in (N, M)
        if f"[{each.name}" in inputs or f",{each.name}" in inputs
    }


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
    "join of columns": "(float[n,6] x) => (float[n,12] y) { t = Neg(x) y = Concat<axis=1>(x, t) }",
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
    "length that is the same at all sizes": "(float[3,2,m,n] x) => (float[a,b] y) "
    "{ t = MaxPool<kernel_shape=[6,1], strides=[6,1], pads=[5,0,5,0]>(x) "
    "y = Flatten<axis=2>(t) }",
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


def drawn(generator: np.random.Generator, tensor: Tensor, sizes: dict[str, int]) -> Array:
    shape = tuple(at(length, sizes) for length in tensor.shape)
    if tensor.dtype is DType.FLOAT32:
        return generator.standard_normal(shape).astype(np.float32)
    most = 2 if tensor.dtype is DType.BOOL else 1
    return generator.integers(0, most, shape).astype(numpy_dtype(tensor.dtype))


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
