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

DETECTORS = (DETECTOR, YOLO)
