"""Detectors that end in their own post-processing, as graphs of ONNX."""

DETECTOR = """(float[1,60,4] boxes, float[1,3,60] scores)
    => (float[m,4] found, float[m] certain, int64[m] kinds)
<float least = {0.6}, float overlap = {0.4}, int64 most = {8}, int64[1] zero = {0},
 int64[1] twenty = {20}, int64[2] flat = {60,4}, int64[2] single = {0,1}, int64 two = {2}>
{ best = ReduceMax<axes=[0,1], keepdims=0>(scores) which = ArgMax<axis=1, keepdims=0>(scores)
  kind = Squeeze(which, zero) good = Greater(best, least) places = NonZero(good)
  at = Squeeze(places, zero) s = Gather(best, at) rows = Reshape(boxes, flat)
  b = Gather(rows, at) c = Gather(kind, at) count = Shape(s) k = Min(count, twenty)
  top, order = TopK(s, k) tb = Gather(b, order) tc = Gather(c, order)
  nb = Unsqueeze(tb, zero) ns = Unsqueeze(top, single)
  kept = NonMaxSuppression(nb, ns, most, overlap) i = Gather<axis=1>(kept, two)
  found = Gather(tb, i) certain = Gather(top, i) kinds = Gather(tc, i) }"""
"""Scores above a threshold, the best of them, and of those that overlap one."""

YOLO = """(float[2,40,4] boxes, float[2,3,40] scores) => (float[n,7] y)
<float least = {0.6}, float overlap = {0.4}, int64 most = {5}, int64[1] one = {1},
 int64[1] two = {2}, int64[1] three = {3}, int64[2] ends = {0,2}, int64[1] zero = {0}>
{ kept = NonMaxSuppression<center_point_box=1>(boxes, scores, most, overlap, least)
  certain = GatherND(scores, kept) image = Slice(kept, zero, one, one)
  kind = Slice(kept, one, two, one) box = Slice(kept, two, three, one)
  place = Concat<axis=1>(image, box) coordinates = GatherND(boxes, place)
  fi = Cast<to=1>(image) fk = Cast<to=1>(kind) fc = Unsqueeze(certain, one)
  y = Concat<axis=1>(fi, coordinates, fk, fc) }"""
"""Of each image and class the best boxes, joined to rows as exporters of YOLO write them."""


def _class(kind: int) -> str:
    """Return the nodes that take the best boxes of a class, as many as are above the threshold."""
    text = """
  s# = Gather<axis=1>(scores, k#) good# = Greater(s#, least)
  of_scores# = NonZero(good#) at# = Transpose(of_scores#) c# = GatherND(s#, at#)
  of_boxes# = NonZero(good#) also# = Transpose(of_boxes#) b# = GatherND(boxes, also#)
  shape# = Shape(c#) n# = Gather(shape#, zeroth) m# = Unsqueeze(n#, zero)
  both# = Concat<axis=0>(most, m#) few# = ReduceMin<keepdims=0>(both#)
  taken# = Reshape(few#, one) t#, i# = TopK(c#, taken#) bt# = Gather(b#, i#)
  again# = Shape(t#) l# = ConstantOfShape<value = int64[1] {#}>(again#)"""
    return text.replace("#", str(kind))


SSD = f"""(float[40,4] boxes, float[40,3] scores)
    => (float[m,4] found, float[m] certain, int64[m] kinds)
<float least = {{0.6}}, float overlap = {{0.4}}, int64 all = {{9223372036854775807}}, int64[1] zero
 = {{0}}, int64 zeroth = {{0}}, int64[1] one = {{1}}, int64[1] most = {{12}}, int64 two = {{2}},
 int64[1] ten = {{10}}, int64[2] single = {{0,1}}, int64 k0 = {{0}}, int64 k1 = {{1}},
 int64 k2 = {{2}}>
{{ {_class(0)} {_class(1)} {_class(2)}
  b = Concat<axis=0>(bt0, bt1, bt2) c = Concat<axis=0>(t0, t1, t2) l = Concat<axis=0>(l0, l1, l2)
  lengths = Shape(b) total = ReduceProd<keepdims=0>(lengths) none = Equal(total, zeroth)
  is_none = Cast<to=9>(none)
  keep = If(is_none) <
    then_branch = nothing () => (int64[0] z) {{
      z = ConstantOfShape<value = int64[1] {{0}}>(zero) }},
    else_branch = best () => (int64[p] z) {{
      far = ReduceMax<keepdims=0>(b) fl = Cast<to=1>(l) apart = Mul(fl, far)
      offsets = Unsqueeze(apart, one) moved = Add(b, offsets) nb = Unsqueeze(moved, zero)
      ns = Unsqueeze(c, single) kept = NonMaxSuppression(nb, ns, all, overlap)
      of = Gather<axis=1>(kept, two) z = Identity(of) }} >
  first = Slice(keep, zero, ten)
  found = Gather(b, first) certain = Gather(c, first) kinds = Gather(l, first) }}"""
"""Of each class the best boxes above a threshold, all moved apart: as torchvision exports SSD."""

DETECTORS = (DETECTOR, YOLO, SSD)
