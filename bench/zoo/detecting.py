"""A detector that decodes its boxes and ends in NonMaxSuppression, for pictures of any size."""

from itertools import chain

import numpy as np
import onnx
from onnx import compose, numpy_helper, parser

from bench.zoo.builder import IR_VERSION, OPSET
from bench.zoo.edge import yolov8n

CLASSES = 8
_CHANNELS = 64 + CLASSES
"""Of a cell: 16 bins for each side of a box, and the classes."""
_GAIN = 1.2
"""Of each convolution, without which the picture's part of a result fades from layer to layer."""


def _grid(number: int, stride: int) -> str:
    """Return the nodes that find the centres of a grid's cells, and the length of their sides."""
    text = """
  f# = Reshape(g#, flat) lengths# = Shape(g#) h# = Gather(lengths#, second)
  w# = Gather(lengths#, third) rows# = Range(nought, h#, unit) columns# = Range(nought, w#, unit)
  fr# = Cast<to=1>(rows#) fc# = Cast<to=1>(columns#) r# = Add(fr#, half) c# = Add(fc#, half)
  plane# = Slice(lengths#, two, four) ru# = Unsqueeze(r#, one) y# = Expand(ru#, plane#)
  x# = Expand(c#, plane#) ys# = Reshape(y#, line) xs# = Reshape(x#, line)
  p# = Concat<axis=0>(xs#, ys#) e# = Shape(xs#)
  s# = ConstantOfShape<value = float[1] {STRIDE}>(e#)"""
    return text.replace("#", str(number)).replace("STRIDE", f"{stride}.0")


def detector() -> onnx.ModelProto:
    """Return YOLOv8n's layers for pictures of open height and width, and the selection of boxes.

    Boxes are decoded as its exporters do: distances from the centre of a cell to the sides are
    means over 16 bins. Of each class the best are selected. A row of `found` is a box (centre,
    width and height), its score and its class. Seeded weights are scaled so that boxes and scores
    depend on the picture, as those of a trained network.
    """
    network = yolov8n(classes=CLASSES)
    for tensor in network.graph.initializer:
        if len(tensor.dims) == 4:
            scaled = numpy_helper.to_array(tensor) * np.float32(_GAIN)
            tensor.CopyFrom(numpy_helper.from_array(scaled, tensor.name))
    for value in chain(network.graph.input, network.graph.output):
        rows, columns = value.type.tensor_type.shape.dim[2:]
        is_image = value.name == "image"
        rows.dim_param = "height" if is_image else f"{value.name}_rows"
        columns.dim_param = "width" if is_image else f"{value.name}_columns"
    grids = [f"float[1,{_CHANNELS},rows{n},columns{n}] g{n}" for n in range(3)]
    numbers = ", ".join(f"{each}.0" for each in range(16))
    decoding = parser.parse_model(f"""<ir_version: {IR_VERSION}, opset_import: ["" : {OPSET}]>
boxes ({", ".join(grids)}) => (float[n,6] found)
<int64[3] flat = {{1, {_CHANNELS}, -1}}, int64[2] line = {{1, -1}}, int64 second = {{2}},
 int64 third = {{3}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] four = {{4}},
 int64 nought = {{0}}, int64 unit = {{1}}, float half = {{0.5}},
 int64[2] parts = {{64, {CLASSES}}}, int64[4] bins = {{1, 4, 16, -1}},
 float[1,1,16,1] numbers = {{{numbers}}}, int64[2] halves = {{2, 2}}, int64 most = {{100}},
 float overlap = {{0.45}}, float least = {{0.9}}, float contrast = {{160}}, int64[1] zero = {{0}},
 int64[1] three = {{3}}>
{{ {"".join(_grid(number, stride) for number, stride in enumerate((8, 16, 32)))}
  joined = Concat<axis=2>(f0, f1, f2) cells = Mul(joined, contrast)
  centres = Concat<axis=1>(p0, p1, p2) sides = Concat<axis=1>(s0, s1, s2)
  coded, kinds = Split<axis=1>(cells, parts)
  binned = Reshape(coded, bins) weights = Softmax<axis=2>(binned) weighted = Mul(weights, numbers)
  distances = ReduceSum<keepdims=0>(weighted, two) before, after = Split<axis=1>(distances, halves)
  low = Sub(centres, before) high = Add(centres, after) both = Add(low, high)
  middle = Mul(both, half) extent = Sub(high, low) placed = Concat<axis=1>(middle, extent)
  scaled = Mul(placed, sides) boxes = Transpose<perm=[0,2,1]>(scaled) scores = Sigmoid(kinds)
  kept = NonMaxSuppression<center_point_box=1>(boxes, scores, most, overlap, least)
  certain = GatherND(scores, kept) first = Slice(kept, zero, one, one)
  kind = Slice(kept, one, two, one) box = Slice(kept, two, three, one)
  place = Concat<axis=1>(first, box) coordinates = GatherND(boxes, place)
  score = Unsqueeze(certain, one) class = Cast<to=1>(kind)
  found = Concat<axis=1>(coordinates, score, class) }}""")
    joined = compose.merge_models(
        network, decoding, [(f"grid{number}", f"g{number}") for number in range(3)]
    )
    joined.graph.name = "detector"
    joined.producer_name = network.producer_name
    return joined
