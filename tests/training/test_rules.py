"""Each rule beside central differences of the loss, in 64 bits."""

import pytest

from arenite.training.rules import RULES
from arenite.training.step import TrainingRecipe
from support.gradients import check_gradients, feeds_of, randomised, step_of
from support.tiny_onnx import parse

IMAGE = "(double[2,4,6,7] i) => (y) <double[2,4,6,7] x{more}> {{a = Add(i, x) {body}}}"
ROW = "(double[3,5] i) => (y) <double[3,5] x{more}> {{a = Add(i, x) {body}}}"


def image(body, more=""):
    return IMAGE.format(body=body, more=more and f", {more}")


def row(body, more=""):
    return ROW.format(body=body, more=more and f", {more}")


def positive(body, more=""):
    """A row of numbers above 0, for operators that want such."""
    return row(
        f"s = Abs(a) one = Constant<value_float=0.5>() c = Cast<to=11>(one) p = Add(s, c) {body}",
        more,
    )


CASES = {
    "Conv": image("y = Conv<pads=[1,1,1,1]>(a, w, b)", "double[6,4,3,3] w, double[6] b"),
    "Conv of strides": image("y = Conv<strides=[2,2],pads=[1,0,0,1]>(a, w)", "double[6,4,3,2] w"),
    "Conv of strides that leave rows out": image("y = Conv<strides=[3,2]>(a, w)",
                                                 "double[6,4,2,2] w"),
    "Conv of dilations": image("y = Conv<dilations=[2,3],pads=[2,2,1,1]>(a, w)",
                               "double[3,4,3,2] w"),
    "Conv in groups": image("y = Conv<group=2,strides=[2,1],pads=[1,1,1,1]>(a, w)",
                            "double[6,2,3,3] w"),
    "Conv depthwise": image("y = Conv<group=4,strides=[2,2],pads=[1,1,1,1]>(a, w)",
                            "double[8,1,3,3] w"),
    "Conv of 1 x 1": image("y = Conv(a, w)", "double[3,4,1,1] w"),
    "Conv of 1 x 1 with strides": image("y = Conv<strides=[2,2]>(a, w)", "double[3,4,1,1] w"),
    "Conv with SAME": image("y = Conv<auto_pad=\"SAME_UPPER\",strides=[2,2]>(a, w)",
                            "double[3,4,3,4] w"),
    "Conv with SAME below": image("y = Conv<auto_pad=\"SAME_LOWER\",strides=[2,2]>(a, w)",
                                  "double[3,4,3,4] w"),
    "Conv of many channels":
        "(double[2,16,4,5] i) => (y) <double[2,16,4,5] x, double[3,16,3,2] w>"
        "{a = Add(i, x) y = Conv<strides=[2,1],dilations=[1,2],pads=[1,1,1,0]>(a, w)}",
    "Conv of what is joined":
        "(double[2,3,5,5] i) => (y) <double[2,3,5,5] x, double[4,3,1,1] v, double[6,7,3,3] w>"
        "{a = Add(i, x) t = Conv(i, v) j = Concat<axis=1>(a, t) y = Conv<pads=[1,1,1,1]>(j, w)}",
    "Conv along one axis":
        "(double[2,3,9] i) => (y) <double[2,3,9] x, double[4,3,3] w>"
        "{a = Add(i, x) y = Conv<strides=[2],pads=[1,1]>(a, w)}",
    "Conv along three axes":
        "(double[1,2,4,4,3] i) => (y) <double[1,2,4,4,3] x, double[3,2,2,3,2] w>"
        "{a = Add(i, x) y = Conv<strides=[2,1,1],pads=[0,1,0,0,1,0]>(a, w)}",
    "ConvTranspose": image("y = ConvTranspose<strides=[2,2],pads=[1,1,0,1]>(a, w, b)",
                           "double[4,3,3,2] w, double[3] b"),
    "ConvTranspose with more output": image(
        "y = ConvTranspose<strides=[2,3],output_padding=[1,2],dilations=[2,1]>(a, w)",
        "double[4,3,2,2] w"),
    "Gemm": row("y = Gemm<alpha=0.5,beta=2.0>(a, w, c)", "double[5,4] w, double[4] c"),
    "Gemm turned": row("y = Gemm<transB=1>(a, w, c)", "double[4,5] w, double[3,1] c"),
    "Gemm of columns": row("y = Gemm<transA=1>(a, w)", "double[3,2] w"),
    "Gemm turned twice": row("y = Gemm<transA=1,transB=1,alpha=3.0>(a, w)", "double[2,3] w"),
    "MatMul": row("y = MatMul(a, w)", "double[5,4] w"),
    "MatMul in batches":
        "(double[2,1,3,5] i) => (y) <double[2,1,3,5] x, double[4,5,2] w>"
        "{a = Add(i, x) y = MatMul(a, w)}",
    "MatMul of many rows by one matrix":
        "(double[2,3,5] i) => (y) <double[2,3,5] x, double[5,2] w>"
        "{a = Add(i, x) y = MatMul(a, w)}",
    "MatMul by a column": row("y = MatMul(a, w)", "double[5] w"),
    "MatMul of a row":
        "(double[5] i) => (y) <double[5] x, double[2,5,3] w> {a = Add(i, x) y = MatMul(a, w)}",
    "MaxPool": image("y = MaxPool<kernel_shape=[2,2],strides=[2,2]>(a)"),
    "MaxPool that overlaps": image("y = MaxPool<kernel_shape=[3,2],pads=[1,0,1,1]>(a)"),
    "AveragePool": image("y = AveragePool<kernel_shape=[3,2],strides=[2,1],pads=[1,0,1,1]>(a)"),
    "AveragePool that counts its padding": image(
        "y = AveragePool<kernel_shape=[3,3],pads=[1,1,1,1],count_include_pad=1>(a)"),
    "AveragePool rounded up": image(
        "y = AveragePool<kernel_shape=[3,2],strides=[2,2],ceil_mode=1>(a)"),
    "MaxPool rounded up": image("y = MaxPool<kernel_shape=[3,2],strides=[2,2],ceil_mode=1>(a)"),
    "AveragePool of tiles":
        "(double[2,4,6,8] i) => (y) <double[2,4,6,8] x>"
        "{a = Add(i, x) y = AveragePool<kernel_shape=[3,2],strides=[3,2]>(a)}",
    "GlobalAveragePool": image("y = GlobalAveragePool(a)"),
    "GlobalMaxPool": image("y = GlobalMaxPool(a)"),
    "BatchNormalization": image(
        "m = Constant<value=double[4]{0.1,0.2,-0.1,0.0}>()"
        "v = Constant<value=double[4]{1.0,0.5,2.0,1.5}>()"
        "y = BatchNormalization(a, g, b, m, v)", "double[4] g, double[4] b"),
    "Relu": row("y = Relu(a)"),
    "LeakyRelu": row("y = LeakyRelu<alpha=0.2>(a)"),
    "PRelu": row("y = PRelu(a, w)", "double[5] w"),
    "Clip": row("l = Constant<value=double{-0.3}>() h = Constant<value=double{0.6}>()"
                "y = Clip(a, l, h)"),
    "Elu": row("y = Elu<alpha=1.5>(a)"),
    "Selu": row("y = Selu(a)"),
    "Sigmoid": row("y = Sigmoid(a)"),
    "Tanh": row("y = Tanh(a)"),
    "HardSigmoid": row("t = Add(a, a) s = Add(t, t) y = HardSigmoid(s)"),
    "HardSwish": row("t = Add(a, a) s = Add(t, t) y = HardSwish(s)"),
    "Softplus": row("y = Softplus(a)"),
    "Softsign": row("y = Softsign(a)"),
    "Softmax": row("y = Softmax<axis=0>(a)"),
    "LogSoftmax": row("y = LogSoftmax<axis=-1>(a)"),
    "Add": row("y = Add(a, w)", "double[3,1] w"),
    "Sum": row("y = Sum(a, w, v, a)", "double[5] w, double[1,1] v"),
    "Mean": row("y = Mean(a, w, v)", "double[5] w, double[3,1] v"),
    "Sub": row("y = Sub(w, a)", "double[2,1,5] w"),
    "Mul": row("y = Mul(a, w)", "double[2,3,1] w"),
    "Mul by itself": row("y = Mul(a, a)"),
    "Div": row("y = Div(a, w)", "double[5] w"),
    "Div of a constant": positive("y = Div(w, p)", "double[5] w"),
    "Pow": positive("e = Constant<value=double{2.5}>() y = Pow(p, e)"),
    "Pow of several": positive("y = Pow(p, e)", "double[5] e = {2.0,1.0,0.5,3.0,-1.0}"),
    "Pow of 2": row("e = Constant<value=double{2.0}>() y = Pow(a, e)"),
    "Neg": row("y = Neg(a)"),
    "Exp": row("y = Exp(a)"),
    "Log": positive("y = Log(p)"),
    "Sqrt": positive("y = Sqrt(p)"),
    "Reciprocal": positive("y = Reciprocal(p)"),
    "Abs": row("y = Abs(a)"),
    "Erf": row("y = Erf(a)"),
    "Sin": row("y = Sin(a)"),
    "Cos": row("y = Cos(a)"),
    "Max": row("s = Mul(w, a) y = Max(a, s)", "double[5] w"),
    "Min": row("s = Mul(w, a) t = Neg(s) y = Min(a, s, t)", "double[5] w"),
    "Where": row("z = Constant<value=double{0.5}>() m = Greater(i, z) n = Mul(w, a)"
                 "y = Where(m, a, n)", "double[3,1] w"),
    "Identity": row("t = Identity(a) y = Neg(t)"),
    "Dropout": row("t = Dropout(a) y = Neg(t)"),
    "Cast": row("f = Cast<to=1>(a) g = Cast<to=11>(f) y = Mul(g, a)"),
    "ReduceSum": image("e = Constant<value=int64[2]{1,-1}>() y = ReduceSum<keepdims=0>(a, e)"),
    "ReduceSum of all": row("y = ReduceSum(a)"),
    "ReduceMean": image("y = ReduceMean<axes=[2,3]>(a)"),
    "ReduceMax": row("y = ReduceMax<axes=[1],keepdims=0>(a)"),
    "ReduceMin": row("y = ReduceMin<axes=[0]>(a)"),
    "ReduceL2": row("y = ReduceL2<axes=[1]>(a)"),
    "ReduceSumSquare": row("y = ReduceSumSquare<axes=[1],keepdims=0>(a)"),
    "Reshape": row("s = Constant<value=int64[2]{5,-1}>() t = Reshape(a, s) y = Mul(t, w)",
                   "double[5,3] w"),
    "Flatten": image("y = Flatten<axis=2>(a)"),
    "Squeeze": row("e = Constant<value=int64[1]{1}>() u = Unsqueeze(a, e) v = Neg(u)"
                   "y = Squeeze(v, e)"),
    "Unsqueeze": row("e = Constant<value=int64[2]{0,2}>() y = Unsqueeze(a, e)"),
    "Transpose": image("t = Transpose<perm=[2,0,3,1]>(a) y = Mul(t, w)", "double[2,7,4] w"),
    "Transpose of all": row("t = Transpose(a) y = Mul(t, w)", "double[5,3] w"),
    "Concat": row("y = Concat<axis=-1>(a, w, a)", "double[3,2] w"),
    "Split": row("s = Constant<value=int64[3]{1,3,1}>() p, q, r = Split<axis=1>(a, s)"
                 "y = Mul(p, q)"),
    "Slice": row("s = Constant<value=int64[1]{-4}>() e = Constant<value=int64[1]{9}>()"
                 "x1 = Constant<value=int64[1]{1}>() y = Slice(a, s, e, x1)"),
    "Slice in steps": image("s = Constant<value=int64[2]{1,0}>()"
                            "e = Constant<value=int64[2]{6,7}>()"
                            "x1 = Constant<value=int64[2]{2,3}>()"
                            "t = Constant<value=int64[2]{2,3}>() y = Slice(a, s, e, x1, t)"),
    "Pad": row("p = Constant<value=int64[4]{1,-1,0,2}>() v = Constant<value=double{0.5}>()"
               "y = Pad(a, p, v)"),
    "Expand": row("e = Constant<value=int64[1]{1}>() u = Unsqueeze(a, e)"
                  "s = Constant<value=int64[3]{1,4,1}>() y = Expand(u, s)"),
    "Tile": row("r = Constant<value=int64[2]{2,3}>() y = Tile(a, r)"),
    "Gather": row("n = Constant<value=int64[2,2]{1,4,1,0}>() y = Gather<axis=1>(a, n)"),
    "Gather of 32-bit indices": image(
        "n = Constant<value=int32[3]{2,0,2}>() y = Gather<axis=1>(a, n)"
    ),
    "Gather of a codebook": row("n = Constant<value=int32[5,4]{2,0,2,1,0,0,0,0,1,1,2,2,1,0,1,2,2,"
                                "1,0,1}>() t = Gather(w, n) y = MatMul(a, t)", "double[4] w"),
    "Gather of rows": row("n = Constant<value=int64[4]{2,0,2,2}>() t = Gather(w, n)"
                          "y = MatMul(t, a)", "double[3,3] w"),
    "Resize": image("s = Constant<value=float[4]{1.0,1.0,2.0,3.0}>()"
                    "y = Resize<mode=\"nearest\","
                    "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\">"
                    "(a, , s)"),
    "DepthToSpace": image("y = DepthToSpace<blocksize=2>(a)"),
    "DepthToSpace by columns": image("y = DepthToSpace<blocksize=2,mode=\"CRD\">(a)"),
    "SpaceToDepth":
        "(double[1,2,4,6] i) => (y) <double[1,2,4,6] x> {a = Add(i, x) "
        "t = SpaceToDepth<blocksize=2>(a) y = Mul(t, t)}",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_gradient_is_how_the_loss_changes(case, tmp_path):
    model = randomised(parse(CASES[case]))
    step = step_of(tmp_path, model, TrainingRecipe("mse", "sgd", 1.0))
    narrow = case == "Cast"  # through 32 bits
    check_gradients(
        step, feeds_of(step), tolerance=1e-3 if narrow else 1e-6, distance=1e-2 if narrow else 1e-5
    )


def test_every_rule_has_a_case():
    without = {"ArgMax", "ArgMin", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less",
               "LessOrEqual", "Round", "Shape", "Sign", "Size"}  # fmt: skip
    tested = {case.split()[0] for case in CASES} | {"BatchNormalization of the batch"}
    assert set(RULES) - without == tested
