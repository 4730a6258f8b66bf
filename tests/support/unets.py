"""A small network whose skips are carried from one side to the other."""

SMALL_UNET = """(float[1,2,32,32] x) => (y)
<float[8,2,3,3] a0, float[8,8,3,3] b0, float[8,8,3,3] c0, float[8,8,3,3] c1, float[8,8,2,2] u,
 float[8,16,3,3] d0, float[8,8,2,2] v, float[1,16,1,1] e0>
{ a = Conv<pads=[1,1,1,1]>(x, a0) p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)
  b = Conv<pads=[1,1,1,1]>(p, b0) q = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b)
  c = Conv<pads=[1,1,1,1]>(q, c0) f = Conv<pads=[1,1,1,1]>(c, c1)
  g = ConvTranspose<strides=[2,2]>(f, u) h = Concat<axis=1>(b, g)
  d = Conv<pads=[1,1,1,1]>(h, d0) i = ConvTranspose<strides=[2,2]>(d, v)
  j = Concat<axis=1>(a, i) y = Conv(j, e0) }"""
