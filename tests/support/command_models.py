"""Models that the commands are given, in the onnx package's own text form."""

CLASSIFIER = """(float[1,3,8,8] x) => (y) <float[8,3,3,3] w, float[128,12] f>
{ c = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w) r = Relu(c) q = Flatten(r) l = Gemm(q, f)
  y = Softmax<axis=-1>(l) }"""
"""Scores of twelve classes for an image."""

TWO_INPUTS = "(float[2,3] a, float[2,3] b) => (s, p) { s = Add(a, b) p = Mul(a, s) }"

LEFT_TO_ONNXRUNTIME = "(float[2,2] x) => (y) { r = Relu(x) d = Det(r) y = Neg(d) }"
"""No kernel of ours takes determinants."""

LACKING = "(uint64[4] x) => (y) { y = Abs(x) }"
"""The runtime has no unsigned integers of 64 bits."""

EXCEEDS_A_CACHE = """(float[1,4,96,64] x) => (y)
    <float[48,4,1,1] a, float[48,1,3,3] b, float[4,48,1,1] c>
    { p = Conv(x, a) q = Relu(p) r = Conv<group=48, pads=[1,1,1,1]>(q, b) s = Relu(r)
      y = Conv(s, c) }"""
"""A block whose steps hand each other 1,179,648 B."""


SMALL_UNET = """(float[1,2,32,32] x) => (y)
<float[8,2,3,3] a0, float[8,8,3,3] b0, float[8,8,3,3] c0, float[8,8,3,3] c1, float[8,8,2,2] u,
 float[8,16,3,3] d0, float[8,8,2,2] v, float[1,16,1,1] e0>
{ a = Conv<pads=[1,1,1,1]>(x, a0) p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)
  b = Conv<pads=[1,1,1,1]>(p, b0) q = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b)
  c = Conv<pads=[1,1,1,1]>(q, c0) f = Conv<pads=[1,1,1,1]>(c, c1)
  g = ConvTranspose<strides=[2,2]>(f, u) h = Concat<axis=1>(b, g)
  d = Conv<pads=[1,1,1,1]>(h, d0) i = ConvTranspose<strides=[2,2]>(d, v)
  j = Concat<axis=1>(a, i) y = Conv(j, e0) }"""

BANDED = """(float[1,3,32,32] x) => (y)
<float[16,3,3,3] w, float[16,1,3,3] d, float[16,16,1,1] p, float[4,16] f>
{ a = Conv<strides=[2,2], pads=[0,0,1,1]>(x, w) b = Relu(a)
  c = Conv<group=16, pads=[1,1,1,1]>(b, d) e = Conv(c, p) g = Add(e, b)
  h = MaxPool<kernel_shape=[2,2], strides=[2,2]>(g)
  i = GlobalAveragePool(h) j = Flatten(i) y = Gemm<transB=1>(j, f) }"""
"""A network whose budgets are met by bands."""

EXPANDING = """(float[1,4,23,21] x) => (y)
<float[4,4,7,7] s, float[24,4,1,1] w, float[24,1,3,3] d, float[4,24,1,1] p>
{ i = Conv<pads=[3,3,3,3]>(x, s) a = Conv(i, w)
  b = Conv<group=24, strides=[2,2], pads=[1,1,1,1]>(a, d) y = Conv(b, p) }"""
"""A block with a tensor six times as wide as those around it."""
ENCODER = """
    (float[seq, 16] x) => (float[seq, 16] y) {
        h = Exp(x)
        t = Transpose <perm = [1, 0]> (x)
        s = MatMul(h, t)
        p = Softmax(s)
        y = MatMul(p, h)
    }
"""
"""A model of texts of any length."""
