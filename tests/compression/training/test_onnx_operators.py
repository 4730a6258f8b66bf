"""Every operator that can be trained, beside ONNX Runtime."""

import numpy as np
import pytest

from support.running import with_random_weights
from support.tiny_onnx import parse

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

from arenite.compression.training import trainable  # noqa: E402
from arenite.compression.training.onnx_operators import OPERATORS  # noqa: E402
from arenite.planner.errors import UnsupportedModelError  # noqa: E402

IMAGE = "(float[2,6,9,11] x) => (y) "
ROWS = "(float[2,6,9] x) => (y) "
UNARY = (
    "Abs", "Cos", "Elu", "Erf", "Exp", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu",
    "Mish", "Neg", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sin", "Softplus", "Softmax",
    "LogSoftmax", "Tanh",
)  # fmt: skip
CASES = {
    **{name: f"{ROWS}{{y = {name}(x)}}" for name in UNARY},
    "Add": ROWS + "<float[9] w> {y = Add(x, w)}",
    "AveragePool": IMAGE + "{y = AveragePool<kernel_shape=[3,3], strides=[2,2]>(x)}",
    "AveragePool without its pads": IMAGE
    + "{y = AveragePool<kernel_shape=[3,3], strides=[2,2], pads=[1,0,1,1]>(x)}",
    "AveragePool with its pads": IMAGE
    + "{y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(x)}",
    "BatchNormalization": IMAGE + "<float[6] g, float[6] b, float[6] m, "
    "float[6] v = {1,2,3,4,5,6}> {y = BatchNormalization(x, g, b, m, v)}",
    "Cast": ROWS + "{i = Cast<to=7>(x) y = Cast<to=1>(i)}",
    "Clip": ROWS + "<float l = {-0.5}, float h = {0.7}> {y = Clip(x, l, h)}",
    "Clip of one side": ROWS + "<float h = {0.7}> {y = Clip(x, , h)}",
    "Concat": "(float[2,6] x) => (y) <float[3,6] w> {y = Concat<axis=0>(x, w)}",
    "Constant": ROWS + "{c = Constant<value_floats=[1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0]>() "
    "y = Add(x, c)}",
    "ConstantOfShape": ROWS + "{s = Shape(x) c = ConstantOfShape(s) y = Sub(c, x)}",
    "Conv": IMAGE + "<float[8,6,3,3] w, float[8] b> {y = Conv(x, w, b)}",
    "Conv dilated, pads of one side": IMAGE
    + "<float[8,6,3,2] w> {y = Conv<dilations=[2,1], pads=[1,0,2,1], strides=[2,1]>(x, w)}",
    "Conv grouped": IMAGE + "<float[9,2,3,3] w> {y = Conv<group=3>(x, w)}",
    "Conv same lower": IMAGE
    + '<float[8,6,4,4] w> {y = Conv<auto_pad="SAME_LOWER", strides=[2,2]>(x, w)}',
    "Conv same upper": IMAGE
    + '<float[8,6,4,4] w> {y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, w)}',
    "Conv valid": IMAGE + '<float[8,6,3,3] w> {y = Conv<auto_pad="VALID">(x, w)}',
    "Conv of one axis": ROWS + "<float[4,6,3] w> {y = Conv<pads=[1,1]>(x, w)}",
    "ConvTranspose": IMAGE + "<float[6,4,3,3] w, float[4] b> {y = ConvTranspose"
    "<strides=[2,2], pads=[1,0,1,1], output_padding=[1,1]>(x, w, b)}",
    "Div": ROWS + "<float[9] w> {y = Div(x, w)}",
    "Div of integers": "(float[2,6,9] x) => (y) <int64 n = {-7}, int64 d = {2}> "
    "{q = Div(n, d) f = Cast<to=1>(q) y = Add(x, f)}",
    "Dropout": ROWS + "{y = Dropout(x)}",
    "Expand": ROWS + "<int64[4] s = {3,1,6,1}> {y = Expand(x, s)}",
    "Flatten": IMAGE + "{y = Flatten<axis=2>(x)}",
    "Flatten whole": IMAGE + "{y = Flatten<axis=0>(x)}",
    "Gather": ROWS + "<int64[2] i = {1,-1}> {y = Gather<axis=1>(x, i)}",
    "Gather of one": ROWS + "<int64 i = {-2}> {y = Gather<axis=1>(x, i)}",
    "Gelu": ROWS + '{y = Gelu<approximate="tanh">(x)}',
    "Gemm": "(float[5,3] x) => (y) <float[7,5] w, float[7] b> "
    "{y = Gemm<transA=1, transB=1, alpha=0.5, beta=2.0>(x, w, b)}",
    "GlobalAveragePool": IMAGE + "{y = GlobalAveragePool(x)}",
    "GlobalMaxPool": IMAGE + "{y = GlobalMaxPool(x)}",
    "InstanceNormalization": IMAGE
    + "<float[6] g, float[6] b> {y = InstanceNormalization(x, g, b)}",
    "LayerNormalization": ROWS
    + "<float[6,9] g, float[6,9] b> {y = LayerNormalization<axis=1>(x, g, b)}",
    "Log": ROWS + "{p = Exp(x) y = Log(p)}",
    "MatMul": ROWS + "<float[9,4] w> {y = MatMul(x, w)}",
    "Max": ROWS + "<float[9] w, float[6,1] v> {y = Max(x, w, v)}",
    "MaxPool": IMAGE + "{y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,0,1]>(x)}",
    "MaxPool rounded up": "(float[1,6,9,12] x) => (y) "
    "{y = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(x)}",
    "Min": ROWS + "<float[9] w> {y = Min(x, w)}",
    "Mul": ROWS + "<float[6,1] w> {y = Mul(x, w)}",
    "PRelu": ROWS + "<float[6,1] w> {y = PRelu(x, w)}",
    "Pad": IMAGE + "<int64[8] p = {0,1,2,0,0,0,1,3}, float v = {1.5}> {y = Pad(x, p, v)}",
    "Pad of axes": IMAGE + "<int64[2] p = {2,1}, int64[1] a = {2}> {y = Pad(x, p, , a)}",
    "Pad by reflection": IMAGE + "<int64[8] p = {0,0,2,1,0,0,1,3}> "
    '{y = Pad<mode="reflect">(x, p)}',
    "Pad by the edge": IMAGE + '<int64[8] p = {0,0,2,1,0,0,1,3}> {y = Pad<mode="edge">(x, p)}',
    "Pow": ROWS + "<float e = {2}> {y = Pow(x, e)}",
    "ReduceL2": ROWS + "<int64[1] a = {-1}> {y = ReduceL2(x, a)}",
    "ReduceMax": ROWS + "<int64[1] a = {1}> {y = ReduceMax(x, a)}",
    "ReduceMean": ROWS + "<int64[2] a = {0,2}> {y = ReduceMean<keepdims=0>(x, a)}",
    "ReduceMin": ROWS + "<int64[1] a = {1}> {y = ReduceMin(x, a)}",
    "ReduceSum": ROWS + "{y = ReduceSum(x)}",
    "ReduceSum of nothing": ROWS + "{y = ReduceSum<noop_with_empty_axes=1>(x)}",
    "Reshape": ROWS + "<int64[3] s = {0,3,-1}> {y = Reshape(x, s)}",
    "Shape": ROWS + "{s = Shape<start=1>(x) f = Cast<to=1>(s) y = ReduceSum(f)}",
    "Slice": IMAGE + "<int64[2] s = {1,8}, int64[2] e = {5,-10}, int64[2] a = {1,2}, "
    "int64[2] t = {2,-3}> {y = Slice(x, s, e, a, t)}",
    "Slice with defaults": ROWS + "<int64[2] s = {0,1}, int64[2] e = {1,99}> {y = Slice(x, s, e)}",
    "Split": "(float[1,6,9] x) => (a, b) <int64[2] s = {2,4}> {a, b = Split<axis=1>(x, s)}",
    "Split evenly": "(float[1,6,7] x) => (a, b) {a, b = Split<axis=2, num_outputs=2>(x)}",
    "Sqrt": ROWS + "{p = Abs(x) y = Sqrt(p)}",
    "Squeeze": "(float[1,6,1,9] x) => (y) <int64[1] a = {2}> {y = Squeeze(x, a)}",
    "Squeeze all": "(float[1,6,1,9] x) => (y) {y = Squeeze(x)}",
    "Sub": ROWS + "<float[9] w> {y = Sub(x, w)}",
    "Sum": ROWS + "<float[9] w, float[6,1] v> {y = Sum(x, w, v)}",
    "Transpose": ROWS + "{y = Transpose<perm=[2,0,1]>(x)}",
    "Transpose reversed": ROWS + "{y = Transpose(x)}",
    "Unsqueeze": ROWS + "<int64[2] a = {0,-1}> {y = Unsqueeze(x, a)}",
    "Where": ROWS + "<bool[9] c = {1,0,1,0,0,1,1,0,1}, float[9] w> {y = Where(c, x, w)}",
}
OLDER = {
    "Clip": ROWS + "{y = Clip<min=-0.5, max=0.7>(x)}",
    "Dropout": ROWS + "{y = Dropout<ratio=0.3>(x)}",
    "Pad": ROWS + "{y = Pad<pads=[0,1,2,0,0,1], value=1.5>(x)}",
    "ReduceSum": ROWS + "{y = ReduceSum<axes=[1]>(x)}",
    "Slice": ROWS + "{y = Slice<starts=[1], ends=[5], axes=[1]>(x)}",
    "Softmax": ROWS + "{y = Softmax(x)}",
    "Split": "(float[1,6,9] x) => (a, b) {a, b = Split<axis=1, split=[2,4]>(x)}",
    "Squeeze": "(float[1,6,1,9] x) => (y) {y = Squeeze<axes=[2]>(x)}",
    "Unsqueeze": ROWS + "{y = Unsqueeze<axes=[0,3]>(x)}",
}
"""As opset 9 has them: attributes where newer ones have operands."""


def assert_same_as_onnxruntime(model: "onnx.ModelProto") -> None:
    model = with_random_weights(model)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    generator = np.random.default_rng(1)
    feeds = {
        each.name: generator.standard_normal(each.shape).astype(np.float32)
        for each in session.get_inputs()
    }
    module = trainable(model).module.eval()
    with torch.no_grad():
        found = module(*(torch.from_numpy(each) for each in feeds.values()))
    found = found if isinstance(found, tuple) else (found,)
    for ours, theirs in zip(found, session.run(None, feeds), strict=True):
        assert ours.shape == theirs.shape
        assert ours.numpy() == pytest.approx(theirs, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_an_operator_computes_what_onnxruntime_does(case):
    assert_same_as_onnxruntime(parse(CASES[case], opset=20))


@pytest.mark.parametrize("case", OLDER)
def test_an_operator_of_an_older_opset_computes_what_onnxruntime_does(case):
    assert_same_as_onnxruntime(parse(OLDER[case], opset=9))


def test_every_operator_has_a_case():
    assert {case.split()[0] for case in CASES} == OPERATORS.keys()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(float[2,2] x) => (y) {y = Det(x)}", "operator Det"),
        ("(float[1,1,4,4] x) => (y, i) {y, i = MaxPool<kernel_shape=[2,2]>(x)}", "second output"),
        (IMAGE + "{y = AveragePool<kernel_shape=[2,2], dilations=[2,2]>(x)}", "with dilations"),
        (
            "(float[1,1,4,4] x) => (y) <float[1,1,2,2] w> "
            "{y = ConvTranspose<output_shape=[5,5]>(x, w)}",
            "with output_shape",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_with_the_reason(text, reason):
    with pytest.raises(UnsupportedModelError, match=reason):
        trainable(parse(text))


def test_running_statistics_are_learned_and_go_back_to_their_initialisers():
    model = with_random_weights(parse(CASES["BatchNormalization"]))
    found = trainable(model)
    images = torch.randn(2, 6, 9, 11, generator=torch.Generator().manual_seed(3))
    before = found.weights(found.module)
    found.module.train()(images)
    after = found.weights(found.module)
    means = images.mean((0, 2, 3)).numpy()
    assert after["m"] == pytest.approx(0.9 * before["m"] + 0.1 * means, abs=1e-5)
    assert np.array_equal(after["g"], before["g"])
