"""Every ONNX operator that we lower, run beside ONNX Runtime."""

import pytest

from arenite.pipeline.targets.compiling import lower_model
from arenite.runtime.operators import LayerNorm, Unary
from support.running import PoisonedSession, assert_same, build, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

CASES = {
    "conv": "(float[1,6,9,11] x) => (y) <float[8,6,3,3] w, float[8] b> {y = Conv(x, w, b)}",
    "conv strided and padded": "(float[2,6,9,11] x) => (y) <float[8,6,3,2] w> "
    "{y = Conv<strides=[2,1], pads=[1,0,2,1]>(x, w)}",
    "conv dilated": "(float[1,6,9,11] x) => (y) <float[8,6,3,3] w> "
    "{y = Conv<dilations=[2,2], pads=[2,2,2,2]>(x, w)}",
    "conv grouped": "(float[1,6,9,11] x) => (y) <float[9,2,3,3] w> {y = Conv<group=3>(x, w)}",
    "conv depthwise": "(float[1,6,9,11] x) => (y) <float[6,1,3,3] w, float[6] b> "
    "{y = Conv<group=6, pads=[1,1,1,1]>(x, w, b)}",
    "conv depthwise with a multiplier": "(float[1,6,9,11] x) => (y) <float[12,1,3,3] w> "
    "{y = Conv<group=6>(x, w)}",
    "conv same upper": "(float[1,6,9,11] x) => (y) <float[8,6,3,3] w> "
    '{y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, w)}',
    "conv same lower": "(float[1,6,9,11] x) => (y) <float[8,6,4,4] w> "
    '{y = Conv<auto_pad="SAME_LOWER", strides=[2,2]>(x, w)}',
    "conv in one dimension": "(float[1,6,20] x) => (y) <float[8,6,3] w> "
    "{y = Conv<strides=[2], pads=[1,1]>(x, w)}",
    "conv with batch norm and relu": "(float[1,6,9,11] x) => (y) <float[8,6,3,3] w, float[8] g, "
    "float[8] b, float[8] m, float[8] v = {1,2,3,4,5,6,7,8}> "
    "{c = Conv(x, w) n = BatchNormalization(c, g, b, m, v) y = Relu(n)}",
    "conv behind a pad": "(float[1,6,9,11] x) => (y) <float[8,6,3,3] w, "
    "int64[8] p = {0,0,1,2,0,0,3,1}> {q = Pad(x, p) y = Conv(q, w)}",
    "conv and a scale of channels": "(float[1,6,9,11] x) => (y) <float[8,6,1,1] w, "
    "float[8,1,1] s, float[1,8,1,1] t> {c = Conv(x, w) d = Mul(c, s) y = Sub(d, t)}",
    "conv read twice keeps what lies between": "(float[1,6,9,11] x) => (y) <float[8,6,1,1] w> "
    "{c = Conv(x, w) r = Relu(c) y = Add(c, r)}",
    "conv transposed": "(float[1,6,5,7] x) => (y) <float[6,4,3,3] w, float[4] b> "
    "{y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(x, w, b)}",
    "conv transposed and grouped": "(float[1,6,5,7] x) => (y) <float[6,2,2,2] w> "
    "{y = ConvTranspose<strides=[2,2], group=2>(x, w)}",
    "conv transposed and depthwise, of a batch, with a scale of channels": "(float[2,20,5,7] x) "
    "=> (y) <float[20,1,3,3] w, float[20,1,1] s> "
    "{c = ConvTranspose<strides=[2,2], group=20, pads=[1,0,1,2]>(x, w) y = Mul(c, s)}",
    "conv transposed along time, to one channel": "(float[2,18,70] x) => (y) <float[18,1,7] w, "
    "float[1] b> {y = ConvTranspose<strides=[3], pads=[2,4], output_padding=[1]>(x, w, b)}",
    "conv transposed along time, with gaps": "(float[1,6,61] x) => (y) <float[6,3,4] w> "
    "{c = ConvTranspose<strides=[2], dilations=[3], pads=[3,2]>(x, w) y = Relu(c)}",
    "gemm": "(float[3,5] x) => (y) <float[5,7] w, float[7] b> {y = Gemm(x, w, b)}",
    "gemm transposed and scaled": "(float[5,3] x) => (y) <float[7,5] w, float[7] b> "
    "{y = Gemm<transA=1, transB=1, alpha=0.5, beta=2.0>(x, w, b)}",
    "gemm behind a flattened image": "(float[1,6,3,4] x) => (y) <float[5,6,1,1] c, "
    "float[60,7] w> {a = Conv(x, c) f = Flatten(a) y = Gemm(f, w)}",
    "matmul with weights": "(float[2,3,5] x) => (y) <float[5,7] w, float[7] b> "
    "{m = MatMul(x, w) y = Add(m, b)}",
    "matmul": "(float[2,3,5] a, float[2,5,7] b) => (y) {y = MatMul(a, b)}",
    "matmul of a transposed": "(float[2,3,5] a, float[2,7,5] b) => (y) "
    "{t = Transpose<perm=[0,2,1]>(b) y = MatMul(a, t)}",
    "matmul broadcast": "(float[4,2,3,5] a, float[2,5,7] b) => (y) {y = MatMul(a, b)}",
    "matmul of a row": "(float[2,1,50] a, float[2,50,151] b) => (y) {y = MatMul(a, b)}",
    "matmul of a row with few columns": "(float[1,5] a, float[5,3] b) => (y) {y = MatMul(a, b)}",
    "matmul of a row with columns": "(float[2,1,50] a, float[2,39,50] b) => (y) "
    "{t = Transpose<perm=[0,2,1]>(b) y = MatMul(a, t)}",
    "max pool": "(float[1,6,9,11] x) => (y) "
    "{y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)}",
    "max pool rounded up": "(float[1,6,9,12] x) => (y) "
    "{y = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(x)}",
    "max pool with indices": "(float[2,6,9,11] x) => (float[2,6,5,6] y, int64[2,6,5,6] i) "
    "{y, i = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)}",
    "max pool with indices between images": "(float[1,3,9,11] x) => (y, i) <float[4,3,1,1] w> "
    "{c = Conv(x, w) y, i = MaxPool<kernel_shape=[2,3], dilations=[2,1]>(c)}",
    "indices of a max pool of rows": "(float[2,3,12] x) => (float[2,3,6] y, int64[2,3,6] i) "
    "{s = Sign(x) y, i = MaxPool<kernel_shape=[2], strides=[2]>(s)}",
    "average pool": "(float[1,6,9,11] x) => (y) "
    "{y = AveragePool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)}",
    "average pool counting padding": "(float[1,6,9,11] x) => (y) "
    "{y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(x)}",
    "average pool of one": "(float[1,6,9,11] x) => (y) "
    "{y = AveragePool<kernel_shape=[1,1], strides=[2,2]>(x)}",
    "global average pool": "(float[2,6,9,11] x) => (y) {y = GlobalAveragePool(x)}",
    "global max pool": "(float[2,6,9,11] x) => (y) {y = GlobalMaxPool(x)}",
    "softmax": "(float[2,6,9] x) => (y) {y = Softmax<axis=-1>(x)}",
    "softmax along channels": "(float[1,6,9,11] x) => (y) <float[4,6,1,1] w> "
    "{c = Conv(x, w) y = Softmax<axis=1>(c)}",
    "softmax along the middle": "(float[2,6,9] x) => (y) {y = Softmax<axis=1>(x)}",
    "hardmax": "(float[2,6,9] x) => (y) {y = Hardmax<axis=-1>(x)}",
    "hardmax along the middle, in place": "(float[2,6,9] x) => (y) "
    "{a = Abs(x) h = Hardmax<axis=1>(a) y = Neg(h)}",
    "log softmax": "(float[2,6,9] x) => (y) {y = LogSoftmax<axis=-1>(x)}",
    "batch norm alone": "(float[1,6,9,11] x) => (y) <float[6] g, float[6] b, float[6] m, "
    "float[6] v = {1,2,3,4,5,6}> {y = BatchNormalization(x, g, b, m, v)}",
    "instance norm": "(float[2,6,9,11] x) => (y) <float[6] g, float[6] b> "
    "{y = InstanceNormalization(x, g, b)}",
    "layer norm": "(float[2,6,9] x) => (y) <float[9] g, float[9] b> "
    "{y = LayerNormalization<axis=-1>(x, g, b)}",
    "layer norm of two axes": "(float[2,6,9] x) => (y) <float[6,9] g> "
    "{y = LayerNormalization<axis=1>(x, g)}",
    "lrn": "(float[1,6,9,11] x) => (y) {y = LRN<size=5, alpha=0.01, beta=0.6, bias=2.0>(x)}",
    "lp normalisation": "(float[2,6,9] x) => (y) {y = LpNormalization<axis=-1, p=2>(x)}",
    "concat of images": "(float[1,6,9,11] x, float[1,3,9,11] z) => (y) <float[4,6,1,1] w> "
    "{c = Conv(x, w) y = Concat<axis=1>(c, z, x)}",
    "concat of rows": "(float[2,6] x, float[3,6] z) => (y) {y = Concat<axis=0>(x, z)}",
    "concat of a result and of a concat that holds it": "(float[1,8,4,4] x, float[1,8,4,4] z) "
    "=> (y) {a = Tanh(x) b = Neg(z) c = Concat<axis=1>(a, x, b) d = Concat<axis=1>(a, c) "
    "y = Neg(d)}",
    "split": "(float[1,6,9,11] x) => (a, b) <int64[2] s = {2,4}> {a, b = Split<axis=1>(x, s)}",
    "slice": "(float[1,6,9,11] x) => (y) <int64[2] s = {1,8}, int64[2] e = {5,-10}, "
    "int64[2] a = {1,2}, int64[2] t = {2,-3}> {y = Slice(x, s, e, a, t)}",
    "pad": "(float[1,6,9,11] x) => (y) <int64[8] p = {0,1,2,0,0,0,1,3}, float v = {1.5}> "
    "{y = Pad(x, p, v)}",
    "pad by reflection": "(float[1,6,9,11] x) => (y) <int64[8] p = {0,0,2,1,0,0,1,3}> "
    '{y = Pad<mode="reflect">(x, p)}',
    "pad by the edge": "(float[1,6,9,11] x) => (y) <int64[8] p = {0,1,2,1,0,0,1,3}> "
    '{y = Pad<mode="edge">(x, p)}',
    "transpose": "(float[2,6,9] x) => (y) {y = Transpose<perm=[2,0,1]>(x)}",
    "transposes that cancel": "(float[1,6,9,11] x) => (y) {t = Transpose<perm=[0,2,3,1]>(x) "
    "r = Relu(t) y = Transpose<perm=[0,3,1,2]>(r)}",
    "channel shuffle": "(float[1,6,4,5] x) => (y) <float[6,6,1,1] w, int64[5] a = {1,2,3,4,5}, "
    "int64[4] b = {1,6,4,5}> {c = Conv(x, w) r = Reshape(c, a) "
    "t = Transpose<perm=[0,2,1,3,4]>(r) y = Reshape(t, b)}",
    "expand": "(float[6,1,3] x) => (y) <int64[4] s = {2,6,4,3}> {y = Expand(x, s)}",
    "tile": "(float[2,3] x) => (y) <int64[2] r = {2,3}> {y = Tile(x, r)}",
    "gather": "(float[5,6,7] x, int64[2,3] i) => (y) {y = Gather<axis=1>(x, i)}",
    "gather of one": "(float[5,6,7] x) => (y) <int64 i = {-2}> {y = Gather<axis=1>(x, i)}",
    "embedding": "(int64[2,3] i) => (y) <float[10,6] w> {y = Gather(w, i)}",
    "gather of slices": "(float[5,6,7] x, int64[2,3,1] i) => (y) {y = GatherND(x, i)}",
    "gather of elements": "(float[5,6,7] x) => (y) <int64[2,3] i = {4,0,-1,-5,3,2}> "
    "{y = GatherND(x, i)}",
    "gather of slices of an image": "(float[1,6,4,5] x) => (y) <float[6,6,1,1] w, "
    "int64[3,2] i = {0,1,0,-1,-1,3}> {c = Conv(x, w) y = GatherND(c, i)}",
    "gather by indices of the run": "(float[2,3,5] x, int64[4,3] i) => (y) "
    "{n = Neg(i) y = GatherND(x, n)}",
    "gather of an image by indices of the run": "(float[2,6,4,5] x, int32[2,3,2] i) => (y) "
    "<float[6,6,1,1] w> {c = Conv(x, w) j = Cast<to=7>(i) y = GatherND(c, j)}",
    "largest elements": "(float[4,9] x) => (v, i) <int64[1] k = {3}> {v, i = TopK(x, k)}",
    "largest elements along the first axis": "(float[9,4] x) => (v, i) <int64[1] k = {9}> "
    "{v, i = TopK<axis=0>(x, k)}",
    "places of the largest elements": "(int64[4,9] x) => (i) <int64[1] k = {3}> "
    "{v, i = TopK(x, k)}",
    "no largest elements": "(float[4,9] x) => (v, i) <int64[1] k = {0}> {v, i = TopK(x, k)}",
    "extremes of nothing": "(float[0,3] x) => (float[1,3] a, float[1,3] b, c, d) "
    "{m = ReduceMax<axes=[0]>(x) n = ReduceMin<axes=[0]>(x) a = Exp(m) b = Reciprocal(n) "
    "c = ReduceProd<axes=[0]>(x) d = ReduceMax<axes=[1]>(x)}",
    "sums of nothing": "(int32[3,0] x) => (a, b) {a = ReduceL1<axes=[1]>(x) "
    "b = ReduceMean<axes=[1]>(x)}",
    "gather of one element": "(float[5,6] x) => (float y) <int64[2] i = {4,5}> "
    "{y = GatherND(x, i)}",
    "one hot": "(int64[2,3] i) => (y) <int64 d = {4}, float[2] v = {-0.5,2}> "
    "{y = OneHot<axis=1>(i, d, v)}",
    "one hot from either end": "(int64[1,4] o) => (float[1,4,3] y) <int64[4] s = {2,-1,-3,7}, "
    "int64 d = {3}, float[2] v = {0,1}> {i = Sub(s, o) y = OneHot(i, d, v)}",
    "scatter to the places of a max pool": "(float[2,3,4,6] x, float[36] g) => (y) "
    "<float z = {0}, int64[1] n = {-1}> {m, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) "
    "c = Clip(x, z, z) d = Reshape(c, n) j = Reshape(i, n) "
    'y = ScatterElements<axis=0, reduction="add">(d, j, g)}',
    "scatter onto numbers": "(float[2,3,4,6] x, float[36] g, float[144] d) => (y) "
    "<int64[1] n = {-1}> {m, i = MaxPool<kernel_shape=[3,2], pads=[1,0,1,0], strides=[2,2]>(x) "
    'j = Reshape(i, n) y = ScatterElements<axis=0, reduction="add">(d, j, g)}',
    "product of letters": "(float[4,3] x, float[5,3] z) => (y) "
    '{y = Einsum<equation="ij,kj->ki">(x, z)}',
    "product of letters, their result unsaid": "(float[4,3] x, float[3,5] z) => (y) "
    '{y = Einsum<equation="zj, ja">(x, z)}',
    "products of a batch of letters": "(float[2,4,7,3] x, float[2,5,7,3] z) => (y) "
    '{y = Einsum<equation="bihd,bjhd->bhij">(x, z)}',
    "sums over two letters": "(float[2,4,3] x, float[3,6,2] z) => (y) "
    '{y = Einsum<equation="abc,cda->bd">(x, z)}',
    "outer product": '(float[4] x, float[6] z) => (y) {y = Einsum<equation="i,j->ji">(x, z)}',
    "outer product of a batch": "(float[2,4] x, float[6,2] z) => (y) "
    '{y = Einsum<equation="bi,jb->ibj">(x, z)}',
    "sum of products": "(float[2,4] x, float[4,2] z) => (y) "
    '{y = Einsum<equation="ij,ji->">(x, z)}',
    "scatter of elements": "(float[4,6] x, int64[2,5] i, float[2,5] u) => (float[4,6] y) "
    "{y = ScatterElements(x, i, u)}",
    "scatter of elements, in place": "(float[4,6] x, int32[4,2] i, float[4,2] u) => (y) "
    "{a = Abs(x) n = Neg(i) s = ScatterElements<axis=1>(a, n, u) y = Neg(s)}",
    "scatter of an image to its last column": "(float[1,6,4,5] x, float[1,2,3,1] u) => (y) "
    "<float[6,6,1,1] w, int64[1,2,3,1] i = {4,-1,0,1,2,-5}> "
    "{c = Conv(x, w) y = ScatterElements<axis=3>(c, i, u)}",
    "scatter of truth values": "(bool[3,4] x, int64[3,2] i, bool[3,2] u) => (bool[3,4] y) "
    "{y = ScatterElements<axis=-1>(x, i, u)}",
    "scatter of what it scatters": "(float[3,4] x, int64[3,4] i) => (y) "
    "{a = Abs(x) y = ScatterElements(a, i, a)}",
    "scatter of slices": "(float[4,3,5] x, int64[2,3,2] i, float[2,3,5] u) => "
    "(float[4,3,5] y) {n = Neg(i) y = ScatterND(x, n, u)}",
    "scatter of slices, in place": "(float[4,3,5] x, int64[7,1] i, float[7,3,5] u) => (y) "
    "{a = Abs(x) s = ScatterND(a, i, u) y = Neg(s)}",
    "depth to space": "(float[1,8,4,5] x) => (y) {y = DepthToSpace<blocksize=2>(x)}",
    "depth to space by columns": "(float[1,8,4,5] x) => (y) "
    '{y = DepthToSpace<blocksize=2, mode="CRD">(x)}',
    "space to depth": "(float[1,2,4,6] x) => (y) {y = SpaceToDepth<blocksize=2>(x)}",
    "resize nearest": "(float[1,6,5,7] x) => (y) <float[4] s = {1,1,2,2}> "
    '{y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", '
    'nearest_mode="floor">(x, , s)}',
    "resize linear": "(float[1,6,5,7] x) => (y) <int64[4] z = {1,6,9,11}> "
    '{y = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, , , z)}',
    "resize linear with corners": "(float[1,6,5,7] x) => (y) <int64[4] z = {1,6,9,11}> "
    '{y = Resize<mode="linear", coordinate_transformation_mode="align_corners">(x, , , z)}',
    "reduce mean of an image": "(float[1,6,9,11] x) => (y) <float[4,6,1,1] w> "
    "{c = Conv(x, w) y = ReduceMean<axes=[2,3], keepdims=0>(c)}",
    "reduce sum": "(float[2,6,9] x) => (y) <int64[2] a = {0,2}> {y = ReduceSum(x, a)}",
    "reduce max of the middle": "(float[2,6,9] x) => (y) {y = ReduceMax<axes=[1]>(x)}",
    "reduce l2": "(float[2,6,9] x) => (y) {y = ReduceL2<axes=[-1], keepdims=0>(x)}",
    "reduce log sum exp": "(float[2,6,9] x) => (y) {y = ReduceLogSumExp<axes=[1]>(x)}",
    "arg max": "(float[2,6,9] x) => (int64[2,1,9] y) {y = ArgMax<axis=1>(x)}",
    "arg min without its axis": "(float[2,6,9] x) => (int64[2,6] y) "
    "{y = ArgMin<axis=2, keepdims=0>(x)}",
    "cumulative sum": "(float[2,6,9] x) => (y) <int64 a = {1}> {y = CumSum<reverse=1>(x, a)}",
    "add broadcast": "(float[2,6,9] x, float[6,1] z) => (y) {y = Add(x, z)}",
    "two broadcast each other": "(float[2,1,9] x, float[6,1] z) => (y) {y = Mul(x, z)}",
    "constant minus": "(float[2,6] x) => (y) <float[6] w> {y = Sub(w, x)}",
    "pow": "(float[2,6] x) => (y) <float e = {3}> {a = Abs(x) y = Pow(a, e)}",
    "prelu": "(float[1,6,4,5] x) => (y) <float[6,1,1] s> {y = PRelu(x, s)}",
    "sum of three": "(float[2,6] a, float[2,6] b, float[6] c) => (y) {y = Sum(a, b, c)}",
    "mean of three": "(float[2,6] a, float[2,6] b, float[2,6] c) => (y) {y = Mean(a, b, c)}",
    "max of three": "(float[2,6] a, float[2,6] b, float[2,6] c) => (y) {y = Max(a, b, c)}",
    "where": "(bool[2,6] c, float[2,6] a, float[6] b) => (y) {y = Where(c, a, b)}",
    "comparison": "(float[2,6] a, float[2,6] b) => (bool[2,6] y) {y = Less(a, b)}",
    "logic": "(float[2,6] a, float[2,6] b) => (bool[2,6] y) "
    "{l = Less(a, b) n = Not(l) y = Or(l, n)}",
    "cast to 16 bits and back, zeros too": "(float[2,6] x) => (y) "
    "{a = Relu(x) h = Cast<to=10>(a) y = Cast<to=1>(h)}",
    "cast": "(float[2,6] x) => (int64[2,6] y) {y = Cast<to=7>(x)}",
    "integers": "(int64[2,6] a, int64[2,6] b) => (int64[2,6] y) {s = Add(a, b) y = Mul(s, a)}",
    "clip": "(float[2,6] x) => (y) <float l = {-0.5}, float h = {0.25}> {y = Clip(x, l, h)}",
    "clip by what is computed": "(float[1,2,3,4] x) => (y) <float h = {0.25}, float r = {0.5}> "
    "{m = ReduceMax<keepdims=0>(x) l = Sub(m, r) p = Transpose<perm=[0,2,3,1]>(x) "
    "c = Clip(p, l) y = Clip(c, , h)}",
    "resize to sizes beside scales without elements": "(float[1,3,4,5] x) => (y) "
    '<float[0] s, int64[4] z = {1,3,8,10}> {y = Resize<mode="nearest">(x, , s, z)}',
    "hard swish written out": "(float[2,6] x) => (y) <float t = {3}, float s = {6}> "
    "{l = Constant<value_float=0.0>() a = Add(x, t) c = Clip(a, l, s) d = Div(c, s) "
    "y = Mul(x, d)}",
    "hard swish written out, divided last": "(float[2,6] x) => (y) <float t = {3}, float s = {6}> "
    "{l = Constant<value_float=0.0>() a = Add(t, x) c = Clip(a, l, s) m = Mul(x, c) "
    "y = Div(m, s)}",
    "hard swish written out, scaled last": "(float[2,6] x) => (y) <float t = {3}, float s = {6}, "
    "float r = {0.16666667}> {l = Constant<value_float=0.0>() a = Add(x, t) c = Clip(a, l, s) "
    "m = Mul(c, x) y = Mul(r, m)}",
    "what is nearly a hard swish": "(float[2,6] x, float[2,6] z) => (y) <float t = {3}, "
    "float s = {6}> {l = Constant<value_float=0.0>() a = Add(x, t) c = Clip(a, l, s) "
    "m = Mul(z, c) y = Div(m, s)}",
    "swish": "(float[2,6] x) => (y) {s = Sigmoid(x) y = Mul(x, s)}",
    "gelu written out": "(float[2,6] x) => (y) <float r = {1.41421356}, float o = {1}, "
    "float h = {0.5}> {d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(x, a) y = Mul(m, h)}",
    "gelu by tanh written out": "(float[2,6] x) => (y) <float c = {0.044715}, "
    "float r = {0.7978845608}, float o = {1}, float h = {0.5}> {b = Mul(c, x) s = Mul(x, b) "
    "u = Mul(x, s) p = Add(x, u) q = Mul(r, p) e = Tanh(q) a = Add(o, e) m = Mul(h, a) "
    "y = Mul(x, m)}",
    "gelu by tanh of a cube": "(float[2,6] x) => (y) <float c = {0.044715}, "
    "float r = {0.7978845608}, float o = {1}, float h = {0.5}, float t = {3}> {b = Pow(x, t) "
    "u = Mul(b, c) p = Add(u, x) q = Mul(p, r) e = Tanh(q) a = Add(e, o) m = Mul(x, a) "
    "y = Mul(m, h)}",
    "gelu by tanh of a square": "(float[2,6] w) => (y) <float c = {0.044715}, "
    "float r = {0.7978845608}, float o = {1}, float h = {0.5}> {x = Mul(w, w) b = Mul(x, x) "
    "u = Mul(b, c) p = Add(u, o) n = Mul(x, p) q = Mul(n, r) e = Tanh(q) a = Add(e, o) "
    "k = Mul(a, h) y = Mul(x, k)}",
    "cumulative sum of a constant along a list of one axis": "(float[4] x) => (y) "
    "<float[4] k = {2,3,4,5}, int64[1] a = {0}> {c = CumSum(k, a) y = Mul(x, c)}",
    "gelu of a product": "(float[2,6] w, float[2,6] z) => (y) <float r = {1.41421356}, "
    "float o = {1}, float h = {0.5}> {x = Mul(w, z) d = Div(x, r) e = Erf(d) a = Add(e, o) "
    "m = Mul(x, h) y = Mul(m, a)}",
    "gelu of a scaled input": "(float[2,6] w) => (y) <float r = {1.41421356}, float o = {1}, "
    "float h = {0.5}, float k = {0.7}> {x = Mul(w, k) d = Div(x, r) e = Erf(d) a = Add(e, o) "
    "m = Mul(x, a) y = Mul(m, h)}",
    "gelu by tanh of a half": "(float[2,6] w) => (y) <float c = {0.044715}, "
    "float r = {0.7978845608}, float o = {1}, float h = {0.5}, float t = {3}, float d = {2}> "
    "{x = Div(w, d) b = Pow(x, t) u = Mul(b, c) p = Add(x, u) q = Mul(p, r) e = Tanh(q) "
    "a = Add(e, o) m = Mul(x, h) y = Mul(m, a)}",
    "what is nearly a gelu": "(float[2,6] x, float[2,6] z) => (y) <float c = {0.044715}, "
    "float r = {0.7978845608}, float o = {1}, float h = {0.5}> {b = Mul(c, x) s = Mul(z, b) "
    "u = Mul(x, s) p = Add(x, u) q = Mul(r, p) e = Tanh(q) a = Add(o, e) m = Mul(h, a) "
    "y = Mul(x, m)}",
    "layer norm written out": "(float[2,3,6] x) => (y) <float e = {1e-5}, float t = {2}, "
    "float[6] g, float[6] b> {m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) p = Pow(d, t) "
    "v = ReduceMean<axes=[2]>(p) a = Add(v, e) s = Sqrt(a) n = Div(d, s) r = Mul(g, n) "
    "y = Add(r, b)}",
    "layer norm written out, of a square and without scale": "(float[2,6] x) => (n) "
    "<float e = {1e-5}> {m = ReduceMean<axes=[1]>(x) d = Sub(x, m) f = Sub(x, m) p = Mul(d, d) "
    "v = ReduceMean<axes=[-1]>(p) a = Add(e, v) s = Sqrt(a) n = Div(f, s)}",
    "what is nearly a layer norm": "(float[2,6] x) => (n) <float e = {1e-5}> "
    "{m = ReduceMean<axes=[0]>(x) d = Sub(x, m) p = Mul(d, d) "
    "v = ReduceMean<axes=[-1]>(p) a = Add(v, e) s = Sqrt(a) n = Div(d, s)}",
    "an output that is an input under another shape": "(float[2,6] x) => (y) "
    "<int64[2] s = {3,4}> {y = Reshape(x, s)}",
    "an output that others read": "(float[2,6] x) => (a, y) {a = Exp(x) y = Neg(a)}",
}
UNARY = (
    "Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "LeakyRelu",
    "Neg", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Tanh",
    "ThresholdedRelu",
)  # fmt: skip
CASES |= {kind: f"(float[3,7,5] x) => (y) {{y = {kind}(x)}}" for kind in UNARY}
CASES |= {
    f"scatter of {element}, {function}": f"({element}[4,6] x, int64[3,6] i, {element}[3,6] u, "
    f"int64[2,1] j, {element}[2,6] v) => ({element}[4,6] y, {element}[4,6] z) "
    f'{{y = ScatterElements<reduction="{function}">(x, i, u) '
    f'z = ScatterND<reduction="{function}">(x, j, v)}}'
    for element in ("float", "int32", "int64", "uint8", "int8")
    for function in ("add", "mul", "min", "max")
}
CASES |= {
    kind: f"(float[3,7,5] x) => (y) {{a = Exp(x) y = {kind}(a)}}"
    for kind in ("Log", "Reciprocal", "Sqrt")
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_gives_what_onnxruntime_gives(name, tmp_path):
    path = save(tmp_path, with_random_weights(parse(CASES[name])))
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert "onnxruntime" not in session.backends()
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for start, kind in (("layer norm written", LayerNorm), ("hard swish written", Unary))
        for name in CASES
        if name.startswith(start)
    ],
)
def test_what_is_written_out_is_one_step(name, kind, tmp_path):
    path = save(tmp_path, with_random_weights(parse(CASES[name])))
    (step,) = lower_model(path).program.steps
    assert type(step.operator) is kind
