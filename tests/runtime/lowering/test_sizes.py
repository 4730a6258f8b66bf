"""A program for a range of sizes states at each of them what one for that size alone does."""

import pytest

from arenite.planner.sizes import Dimension, every_value
from support.sized_programs import assembled, of_text, ranged, root_at

N = Dimension("n", 3, 9)

GRAPHS = {
    "elementwise": "(float[1,$n,8] x) => (y) { a = Relu(x) y = Add(a, x) }",
    "linear": """(float[1,$n,8] x) => (y) <float[8,4] w, float[4] b> {
        a = MatMul(x, w) y = Add(a, b) }""",
    "attention": """(float[1,$n,8] x) => (y) <float[8,8] q, float[8,8] k, float[8,8] v,
        int64[4] heads = {0, 0, 2, 4}, int64[3] joined = {0, 0, 8}> {
        a = MatMul(x, q) b = MatMul(x, k) c = MatMul(x, v)
        d = Reshape(a, heads) e = Reshape(b, heads) f = Reshape(c, heads)
        g = Transpose<perm=[0,2,1,3]>(d) h = Transpose<perm=[0,2,3,1]>(e)
        i = Transpose<perm=[0,2,1,3]>(f)
        j = MatMul(g, h) k2 = Softmax<axis=-1>(j) l = MatMul(k2, i)
        m = Transpose<perm=[0,2,1,3]>(l) y = Reshape(m, joined) }""",
    "convolutions": """(float[1,3,$n,12] x) => (y)
        <float[8,3,3,3] w, float[8] b, float[4,8,1,1] v> {
        a = Conv<pads=[1,1,1,1]>(x, w, b) b2 = Relu(a) y = Conv(b2, v) }""",
    "strided": """(float[1,3,$n,12] x) => (y) <float[8,3,3,3] w> {
        a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w)
        y = MaxPool<kernel_shape=[2,2], strides=[1,1], pads=[1,1,0,0]>(a) }""",
    "same": """(float[1,3,$n,12] x) => (y) <float[8,3,3,3] w> {
        y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, w) }""",
    "ceil": """(float[1,3,$n,12] x) => (y) {
        y = MaxPool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x) }""",
    "mean": "(float[1,3,$n,12] x) => (y) { y = GlobalAveragePool(x) }",
    "largest": "(float[1,3,$n,12] x) => (y) { y = GlobalMaxPool(x) }",
    "reduce": "(float[1,$n,12] x) => (y) { y = ReduceMean<axes=[1]>(x) }",
    "transpose": "(float[1,$n,12] x) => (y) { a = Transpose<perm=[0,2,1]>(x) y = Relu(a) }",
    "concat": "(float[1,$n,4] x, float[1,3,4] z) => (y) { a = Relu(x) y = Concat<axis=1>(a, z) }",
    "concat inner": """(float[2,$n,4] x, float[2,3,4] z) => (y) {
        a = Relu(x) y = Concat<axis=1>(a, z) }""",
    "split": """(float[2,$n,8] x) => (y, z) <int64[2] s = {3, 5}> {
        y, z = Split<axis=2>(x, s) }""",
    "slice": """(float[2,$n,8] x) => (y) <int64[1] s = {1}, int64[1] e = {100}, int64[1] a = {1}> {
        y = Slice(x, s, e, a) }""",
    "slice from the end": """(float[2,$n,8] x) => (y)
        <int64[1] s = {-1}, int64[1] e = {100}, int64[1] a = {1}> { y = Slice(x, s, e, a) }""",
    "backwards": """(float[2,$n,8] x) => (y)
        <int64[1] s = {-1}, int64[1] e = {-100}, int64[1] a = {1}, int64[1] t = {-1}> {
        y = Slice(x, s, e, a, t) }""",
    "pad": """(float[1,2,$n,4] x) => (y) <int64[8] p = {0,0,1,2,0,0,3,4}> { y = Pad(x, p) }""",
    "reflect": """(float[1,2,$n,4] x) => (y) <int64[8] p = {0,0,1,2,0,0,1,2}> {
        y = Pad<mode="reflect">(x, p) }""",
    "edge": """(float[1,2,$n,4] x) => (y) <int64[8] p = {0,0,1,2,0,0,1,2}> {
        y = Pad<mode="edge">(x, p) }""",
    "tile": "(float[1,$n,4] x) => (y) <int64[3] r = {2, 3, 1}> { y = Tile(x, r) }",
    "depth to space": "(float[1,8,$n,4] x) => (y) { y = DepthToSpace<blocksize=2>(x) }",
    "nearest": """(float[1,2,$n,4] x) => (y) <float r, float[4] s = {1, 1, 2, 2}> {
        y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor">(x, , s) }""",
    "bilinear": """(float[1,2,$n,4] x) => (y) <float[4] s = {1, 1, 2, 2}> {
        y = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, , s) }""",
    "norm": """(float[1,$n,8] x) => (y) <float[8] s, float[8] b> {
        y = LayerNormalization<axis=-1>(x, s, b) }""",
    "gather": "(int64[1,$n] x) => (y) <float[10,4] t> { y = Gather(t, x) }",
    "last": "(float[1,$n,8] x) => (y) <int64 i = {-1}> { y = Gather<axis=1>(x, i) }",
    "transposed convolution": """(float[1,4,$n,5] x) => (y) <float[4,3,2,2] w> {
        y = ConvTranspose<strides=[2,2]>(x, w) }""",
    "lstm": """(float[$n,1,4] x) => (y, h, c)
        <float[1,12,4] w, float[1,12,3] r, float[1,24] b> {
        y, h, c = LSTM<hidden_size=3>(x, w, r, b) }""",
    "gru": """(float[$n,1,4] x) => (y, h)
        <float[1,9,4] w, float[1,9,3] r, float[1,18] b> {
        y, h = GRU<hidden_size=3>(x, w, r, b) }""",
    "reshaped by its shape": """(float[1,$n,8] x) => (y)
        <int64 one = {1}, int64[1] axis = {0}, int64[1] last = {4}, int64[1] two = {2}> {
        a = Shape(x) b = Gather(a, one) c = Unsqueeze(b, axis) d = Concat<axis=0>(c, two, last)
        e = Reshape(x, d) y = Transpose<perm=[1,0,2]>(e) }""",
    "positions": """(int64[1,$n] x) => (y)
        <float[10,4] words, float[16,4] places, int64[1] zero = {0}, int64[1] one = {1},
        int64[1] two = {2}> {
        a = Gather(words, x) b = Shape(x) c = Slice(b, one, two, zero)
        d = Slice(places, zero, c, zero) y = Add(a, d) }""",
    "range": """(int64[1,$n] x, float[16,4] places) => (y)
        <int64 one = {1}, int64 zero = {0}> {
        b = Shape(x) c = Gather(b, one) d = Range(zero, c, one) y = Gather(places, d) }""",
    "expand": """(float[1,$n,8] x, float[1,1,8] z) => (y) {
        a = Shape(x) b = Expand(z, a) y = Mul(x, b) }""",
    "zeros": """(float[$n,1,4] x) => (y) <int64[1] zero = {0}, int64[1] one = {1}> {
        a = Shape(x) b = ConstantOfShape(a) y = Add(x, b) }""",
    "of one at all sizes": """(float[1,$n,4] x) => (y) <int64[2] flat = {-1, 4}> {
        b = Transpose<perm=[0,2,1]>(x)
        c = MaxPool<kernel_shape=[3], strides=[8]>(b) d = Reshape(c, flat)
        y = Relu(d) }""",
    "flattened": """(float[$n,4,3] x) => (y) <int64[2] s = {-1, 12}> {
        a = Reshape(x, s) y = Relu(a) }""",
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_all_sizes_have_the_numbers_of_programs_for_that_size(name):
    text = GRAPHS[name]
    found = assembled(ranged(text, N)).root
    assert found["axes"]
    for n in every_value([N])["n"]:
        expected = assembled(of_text(text, {"n": int(n)})).root
        assert compared(root_at(found, {"n": int(n)})) == compared(expected)


def test_a_constant_that_has_no_front_is_filled_in_the_run():
    text = """(float[2,$n,4] x) => (y) {
        a = Shape(x) b = ConstantOfShape<value=float[1] {1}>(a) y = Add(x, b) }"""
    root = root_at(assembled(ranged(text, N)).root, {"n": 5})
    filled, added = root["steps"]
    assert [move["shape"] for move in filled["kernel"]["moves"]] == [[2, 5, 4]]
    assert root["tensors"][filled["inputs"][0]]["shape"] == [1, 1, 1]
    assert added["kernel_type"] == "Binary"


def test_a_constant_that_is_no_number_at_any_size_is_filled_in_the_run():
    text = """(float[2,$n,4] x, bool[2,$n,4] m) => (y) <float zero = {0}> {
        a = Shape(x) none = Div(zero, zero) b = Expand(none, a) y = Where(m, x, b) }"""
    root = root_at(assembled(ranged(text, N)).root, {"n": 5})
    assert [each["kernel_type"] for each in root["steps"]] == ["Copy", "Select"]


def compared(root):
    """Return what does not depend on the plan; a pool with one position needs no strides."""
    for step in root["steps"]:
        kernel = step["kernel"]
        if (
            step["kernel_type"] == "Pool2D"
            and root["tensors"][step["outputs"][0]]["shape"][1] == 1
        ):
            kernel["strides"] = kernel["window"]
    tensors = [
        (each["name"], each["type"], each["shape"])
        for each in root["tensors"]
        if not each["name"].endswith("/scratch")
    ]
    steps = [
        (each["name"], each["kernel_type"], each["kernel"], each["inputs"], each["outputs"])
        for each in root["steps"]
    ]
    return tensors, steps, [(each["name"], each["tensor"]) for each in root["outputs"]]
