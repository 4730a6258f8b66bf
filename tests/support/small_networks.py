"""Small networks of the kinds that are trained, with seeded weights, in 32 or 64 bits."""

import math

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

from arenite.training import TrainingRecipe
from support.tiny_onnx import parse

_NORM = "BatchNormalization"

LENET_5 = """(float[4,1,16,16] x) => (y)
<float[6,1,5,5] c1, float[6] b1, float[16,6,5,5] c2, float[16] b2, float[120,64] f1,
 float[120] g1, float[84,120] f2, float[84] g2, float[10,84] f3, float[10] g3>
{ a = Conv<pads=[2,2,2,2]>(x, c1, b1) r = Relu(a) p = MaxPool<kernel_shape=[2,2],strides=[2,2]>(r)
  d = Conv(p, c2, b2) e = Relu(d) q = MaxPool<kernel_shape=[2,2],strides=[2,2]>(e)
  h = Flatten(q) i = Gemm<transB=1>(h, f1, g1) j = Relu(i) k = Gemm<transB=1>(j, f2, g2)
  l = Relu(k) m = Gemm<transB=1>(l, f3, g3) y = Softmax(m) }"""

MOBILENET_V2 = """(float[4,3,16,16] x) => (y)
<float[8,3,3,3] w0, float[8] s0, float[8] t0, float[8] m0, float[8] v0,
 float[24,8,1,1] w1, float[24] s1, float[24] t1, float[24] m1, float[24] v1,
 float[24,1,3,3] w2, float[24] s2, float[24] t2, float[24] m2, float[24] v2,
 float[8,24,1,1] w3, float[8] s3, float[8] t3, float[8] m3, float[8] v3,
 float[5,8] f, float[5] g>
{ low = Constant<value=float{0.0}>() six = Constant<value=float{6.0}>()
  a = Conv<pads=[1,1,1,1],strides=[2,2]>(x, w0) b = BatchNormalization(a, s0, t0, m0, v0)
  c = Clip(b, low, six)
  d = Conv(c, w1) e = BatchNormalization(d, s1, t1, m1, v1) h = Clip(e, low, six)
  i = Conv<pads=[1,1,1,1],group=24>(h, w2) j = BatchNormalization(i, s2, t2, m2, v2)
  k = Clip(j, low, six)
  l = Conv(k, w3) n = BatchNormalization(l, s3, t3, m3, v3)
  o = Add(n, c) p = GlobalAveragePool(o) q = Flatten(p) y = Gemm<transB=1>(q, f, g) }"""

RESNET = """(float[4,3,24,24] x) => (y)
<float[16,3,7,7] w0, float[16] s0, float[16] t0, float[16] m0, float[16] v0,
 float[8,16,1,1] w1, float[8] s1, float[8] t1, float[8] m1, float[8] v1,
 float[8,8,3,3] w2, float[8] s2, float[8] t2, float[8] m2, float[8] v2,
 float[32,8,1,1] w3, float[32] s3, float[32] t3, float[32] m3, float[32] v3,
 float[32,16,1,1] w4, float[32] s4, float[32] t4, float[32] m4, float[32] v4,
 float[6,32] f, float[6] g>
{ a = Conv<pads=[3,3,3,3],strides=[2,2]>(x, w0) b = BatchNormalization(a, s0, t0, m0, v0)
  c = Relu(b) p = MaxPool<kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]>(c)
  d = Conv(p, w1) e = BatchNormalization(d, s1, t1, m1, v1) h = Relu(e)
  i = Conv<pads=[1,1,1,1],strides=[2,2]>(h, w2) j = BatchNormalization(i, s2, t2, m2, v2)
  k = Relu(j) l = Conv(k, w3) n = BatchNormalization(l, s3, t3, m3, v3)
  o = Conv<strides=[2,2]>(p, w4) q = BatchNormalization(o, s4, t4, m4, v4)
  u = Add(n, q) z = Relu(u) gap = GlobalAveragePool(z) fl = Flatten(gap)
  y = Gemm<transB=1>(fl, f, g) }"""

VGG = """(float[2,3,16,16] x) => (y)
<float[16,3,3,3] w0, float[16] b0, float[16,16,3,3] w1, float[16] b1, float[24,16,3,3] w2,
 float[24] b2, float[24,24,3,3] w3, float[24] b3, float[32,384] f, float[32] g, float[5,32] k,
 float[5] l>
{ a = Conv<pads=[1,1,1,1]>(x, w0, b0) b = Relu(a) c = Conv<pads=[1,1,1,1]>(b, w1, b1) d = Relu(c)
  e = MaxPool<kernel_shape=[2,2],strides=[2,2]>(d)
  h = Conv<pads=[1,1,1,1]>(e, w2, b2) i = Relu(h) j = Conv<pads=[1,1,1,1]>(i, w3, b3) m = Relu(j)
  n = MaxPool<kernel_shape=[2,2],strides=[2,2]>(m) o = Flatten(n)
  p = Gemm<transB=1>(o, f, g) q = Relu(p) y = Gemm<transB=1>(q, k, l) }"""

UNET = """(float[2,2,16,16] x) => (y)
<float[8,2,3,3] w0, float[8] b0, float[8,8,3,3] w1, float[8] b1, float[16,8,3,3] w2, float[16] b2,
 float[16,16,3,3] w3, float[16] b3, float[16,8,2,2] u, float[8] ub, float[8,16,3,3] w4,
 float[8] b4, float[1,8,1,1] w5, float[1] b5>
{ a = Conv<pads=[1,1,1,1]>(x, w0, b0) b = Relu(a) c = Conv<pads=[1,1,1,1]>(b, w1, b1) d = Relu(c)
  e = MaxPool<kernel_shape=[2,2],strides=[2,2]>(d)
  h = Conv<pads=[1,1,1,1]>(e, w2, b2) i = Relu(h) j = Conv<pads=[1,1,1,1]>(i, w3, b3) k = Relu(j)
  l = ConvTranspose<strides=[2,2]>(k, u, ub) m = Concat<axis=1>(d, l)
  n = Conv<pads=[1,1,1,1]>(m, w4, b4) o = Relu(n) p = Conv(o, w5, b5) y = Sigmoid(p) }"""

GRU = """(float[20,3,6] x) => (y)
<float[1,36,6] w, float[1,36,12] r, float[1,72] b, float[4,12] f, float[4] g>
{ s, h = GRU<hidden_size=12,linear_before_reset=1>(x, w, r, b)
  axes = Constant<value=int64[1]{0}>() l = Squeeze(h, axes) y = Gemm<transB=1>(l, f, g) }"""

LSTM = """(float[20,3,6] x) => (y)
<float[1,48,6] w, float[1,48,12] r, float[1,96] b, float[4,12] f, float[4] g>
{ s, h, c = LSTM<hidden_size=12>(x, w, r, b)
  axes = Constant<value=int64[1]{0}>() l = Squeeze(h, axes) y = Gemm<transB=1>(l, f, g) }"""

NETWORKS = {
    "lenet-5": (LENET_5, TrainingRecipe("cross-entropy", "momentum", 1.0)),
    "mobilenet-v2": (MOBILENET_V2, TrainingRecipe("cross-entropy", "momentum", 1.0)),
    "mobilenet-v2, batch statistics": (
        MOBILENET_V2, TrainingRecipe("cross-entropy", "momentum", 1.0, batch_statistics=True),
    ),
    "resnet": (RESNET, TrainingRecipe("cross-entropy", "momentum", 1.0)),
    "resnet, batch statistics": (
        RESNET, TrainingRecipe("cross-entropy", "momentum", 1.0, batch_statistics=True),
    ),
    "vgg": (VGG, TrainingRecipe("cross-entropy", "momentum", 1.0)),
    "u-net": (UNET, TrainingRecipe("bce", "momentum", 1.0)),
    "gru": (GRU, TrainingRecipe("cross-entropy", "momentum", 1.0)),
    "lstm": (LSTM, TrainingRecipe("cross-entropy", "momentum", 1.0)),
}  # fmt: skip
"""Networks and how they are trained, by name."""


def network(name: str, seed: int = 0) -> onnx.ModelProto:
    """Return a network in 32 bits."""
    model = parse(NETWORKS[name][0])
    random = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        shape = tuple(tensor.dims)
        if tensor.name[0] in "sv" and len(shape) == 1:  # scales and variances
            values = random.uniform(0.5, 1.5, shape)
        elif len(shape) == 1:
            values = 0.1 * random.standard_normal(shape)
        else:
            spread = math.sqrt(2 / max(1, math.prod(shape[1:])))
            values = spread * random.standard_normal(shape)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values.astype(np.float32), tensor.name))
    return model


def widened(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in 64 bits: inputs, constants and everything between."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    graph = wide.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    attributes = [a for node in graph.node for a in node.attribute if a.HasField("t")]
    for tensor in (*graph.initializer, *(each.t for each in attributes)):
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = onnx.numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return wide
