"""The lengths of each operator's results as expressions of the lengths of its inputs.

They are needed only where a length depends on a dimension with a range. The onnx package infers
numbers; each rule here is checked against it at several sizes (`ranged`).
"""

import math
import re
from collections.abc import Mapping

from arenite.planner.errors import SizeError
from arenite.planner.importers.onnx.attention_lengths import ATTENTION_RULES
from arenite.planner.importers.onnx.call import Call, Rule, Shape, rules_of, whole_number
from arenite.planner.importers.onnx.moved_lengths import MOVED_RULES, axes_of, without_axes
from arenite.planner.importers.onnx.window_lengths import WINDOW_RULES, rounded_up
from arenite.planner.sizes import depends


def output_shapes(call: Call) -> list[Shape]:
    """Return the shape of each output, by position.

    Raises:
        SizeError: No rule is known, or the shape is not known for all sizes.
    """
    rule = _RULES.get(call.kind) or _RULES.get(call.kind.removeprefix("com.microsoft."))
    if rule is None:
        raise SizeError("no rule for the lengths of its results")
    return rule(call)


def is_known(kind: str) -> bool:
    """Tell whether there is a rule for an operator."""
    return kind in _RULES or kind.removeprefix("com.microsoft.") in _RULES


def _alike(call: Call) -> list[Shape]:
    """Of results of the shape of the first input; smaller results have fixed shapes."""
    source = call.shape()
    return [
        source if made is None or len(made.shape) == len(source) else made.shape
        for made in call.made
    ]


def _fixed(call: Call) -> list[Shape]:
    """Of results whose shapes depend on no lengths."""
    return [made.shape if made else () for made in call.made]


def _scalars(call: Call) -> list[Shape]:
    return [call.shape(), *[()] * (len(call.made) - 1)]


def _broadcast(call: Call) -> list[Shape]:
    return [call.broadcast(*(shape for shape in call.shapes if shape is not None))]


def _broadcast_of(*positions: int) -> Rule:
    return lambda call: [call.broadcast(*(call.shape(position) for position in positions))]


def _normalised(call: Call) -> list[Shape]:
    """Of a normalisation from an axis on, with its means and deviations."""
    source = call.shape()
    axis = call.axis(-1, len(source))
    inner = (*source[:axis], *[1] * (len(source) - axis))
    return [source, inner, inner, source][: len(call.made)]


def _skipped(call: Call) -> list[Shape]:
    source = call.broadcast(call.shape(), call.shape(1))
    inner = (*source[:-1], 1)
    return [source, inner, inner, source][: len(call.made)]


def _product(one: int = 0, other: int = 1) -> Rule:
    def rule(call: Call) -> list[Shape]:
        return [_matrix_product(call, call.shape(one), call.shape(other))]

    return rule


def _matrix_product(call: Call, left: Shape, right: Shape) -> Shape:
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    call.require_same(left[-1], right[-2] if len(right) > 1 else right[0], "lengths")
    return (*call.broadcast(left[:-2], right[:-2]), *rows, *columns)


def _fused_product(call: Call) -> list[Shape]:
    left, right = call.shape(), call.shape(1)
    if call.integer("transA", 0):
        left = (*left[:-2], left[-1], left[-2])
    if call.integer("transB", 0):
        right = (*right[:-2], right[-1], right[-2])
    return [_matrix_product(call, left, right)]


def _product_of_bits(call: Call) -> list[Shape]:
    """Of MatMulNBits: rows and its outputs, N."""
    return [(*call.shape()[:-1], call.integer("N", 0))]


def _gathered_of_bits(call: Call) -> list[Shape]:
    """Of GatherBlockQuantized: rows of a matrix, whose codes may be two to a byte."""
    (made,) = call.made
    if call.integer("gather_axis", 0) != 0 or len(call.shape()) != 2 or made is None:
        raise SizeError("a gather_axis other than 0 of a matrix is unsupported for a range")
    return [(*call.shape(1), made.shape[-1])]


def _shape_of(position: int) -> Rule:
    return lambda call: [call.shape(position)] * len(call.made)


def _reduced(call: Call) -> list[Shape]:
    source = call.shape()
    axes = call.stated("axes", 1)
    if not axes:
        if call.integer("noop_with_empty_axes", 0):
            return [source]
        axes = tuple(range(len(source)))
    return [without_axes(call, source, axes_of(axes, len(source)))]


def _found(call: Call) -> list[Shape]:
    """Of ArgMax and ArgMin."""
    source = call.shape()
    return [without_axes(call, source, [call.axis(0, len(source))])]


def _recurrent(call: Call) -> list[Shape]:
    length, batch, _ = call.shape()
    ways, *both = call.shape(2)
    hidden = both[0 if call.kind == "com.microsoft.DynamicQuantizeLSTM" else 1]
    if call.integer("layout", 0):
        length, batch = batch, length
    for position in (5, 6):
        if call.has(position):
            axis = 0 if call.integer("layout", 0) else 1
            call.require_same(call.shape(position)[axis], batch, "lengths")
    if call.integer("layout", 0):
        state = (batch, ways, hidden)
        return [(batch, length, ways, hidden), state, state][: len(call.made)]
    state = (ways, batch, hidden)
    return [(length, ways, batch, hidden), state, state][: len(call.made)]


def _top(call: Call) -> list[Shape]:
    source = list(call.shape())
    count = call.elements(1)[0] if call.has(1) else call.integer("k", 0)
    source[call.axis(-1, len(source))] = count
    return [tuple(source)] * len(call.made)


def _range(call: Call) -> list[Shape]:
    start, limit, delta = (whole_number(call.elements(position)[0]) for position in range(3))
    if depends(delta) or not delta:
        raise SizeError("Range supports one delta for all sizes, other than 0")
    count = rounded_up(limit - start, delta) if delta > 0 else rounded_up(start - limit, -delta)
    return [(call.ranges.largest(0, count),)]


def _filled(call: Call) -> list[Shape]:
    return [call.elements(0)]


def _one_hot(call: Call) -> list[Shape]:
    lengths = list(call.shape())
    axis = call.integer("axis", -1)
    lengths.insert(axis if axis >= 0 else axis + len(lengths) + 1, call.elements(1)[0])
    return [tuple(lengths)]


def _grid_sampled(call: Call) -> list[Shape]:
    return [(*call.shape()[:2], *call.shape(1)[1:-1])]


def _regions(call: Call) -> list[Shape]:
    sides = call.integer("output_height", 1), call.integer("output_width", 1)
    return [(call.shape(1)[0], call.shape()[1], *sides)]


def _einsum(call: Call) -> list[Shape]:
    equation = str(call.attributes.get("equation", "")).replace(" ", "")
    if not re.fullmatch(r"[A-Za-z,]+(->[A-Za-z]*)?", equation):
        raise SizeError(f"equation={equation} of Einsum is unsupported for a range, "
                        "supported: letters without ...")  # fmt: skip
    terms, _, result = equation.partition("->")
    lengths: dict[str, int] = {}
    for term, shape in zip(terms.split(","), call.shapes, strict=True):
        for letter, length in zip(term, shape or (), strict=True):
            known = lengths.get(letter)
            lengths[letter] = (
                length if known is None else call.require_same(known, length, "lengths")
            )
    if "->" not in equation:
        letters = terms.replace(",", "")
        result = "".join(sorted(each for each in lengths if letters.count(each) == 1))
    return [tuple(lengths[letter] for letter in result)]


def _boxes(call: Call) -> list[Shape]:
    images, classes, boxes = call.shape(1)
    call.require_same(call.shape()[0], images, "lengths")
    call.require_same(call.shape()[1], boxes, "lengths")
    most = 0
    if call.has(2):
        stated = call.value(2)
        most = boxes
        if stated is not None and stated.size == 1:
            most = call.ranges.smallest(call.ranges.largest(stated.ravel()[0], 0), boxes)
    return [(images * classes * most, 3)]


def _places(call: Call) -> list[Shape]:
    return [(len(call.shape()), math.prod(call.shape()))]


def _compressed(call: Call) -> list[Shape]:
    source, most = call.shape(), math.prod(call.shape(1))
    if "axis" not in call.attributes:
        return [(call.ranges.smallest(math.prod(source), most),)]
    axis = call.axis(0, len(source))
    return [(*source[:axis], call.ranges.smallest(source[axis], most), *source[axis + 1 :])]


def _shape(call: Call) -> list[Shape]:
    return [(len(call.shape()[call.taken()]),)]


def _embedded(call: Call) -> list[Shape]:
    """Of EmbedLayerNormalization: the embedding, how long each text is, the sum."""
    batch, rows = call.shape()
    for position in (1, 7, 8):  # segments, a mask, and positions
        if call.has(position):
            call.broadcast(call.shape(), call.shape(position))
    width = call.shape(2)[1]
    return [(batch, rows, width), (batch,), (batch, rows, width)][: len(call.made)]


_RULES: Mapping[str, Rule] = {
    **WINDOW_RULES,
    **MOVED_RULES,
    **ATTENTION_RULES,
    **rules_of(
        _alike,
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization",
        "Bernoulli", "BiasGelu", "BitwiseNot", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Cos",
        "Cosh", "CumSum", "DequantizeLinear", "Dropout", "Elu", "Erf", "Exp", "EyeLike",
        "FastGelu", "Floor", "Gelu", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax",
        "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN", "LeakyRelu", "Log",
        "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish", "Neg", "Not",
        "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QuantizeLinear", "QuickGelu",
        "RMSNormalization", "RandomNormalLike", "RandomUniformLike", "Reciprocal", "Relu",
        "ReverseSequence", "RotaryEmbedding", "Round", "Scatter", "ScatterElements", "ScatterND",
        "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus",
        "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
    ),
    **rules_of(
        _broadcast,
        "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal",
        "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul",
        "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
    ),
    **rules_of(_broadcast_of(0, 3), "QLinearAdd", "QLinearMul"),
    **rules_of(_scalars, "DynamicQuantizeLinear"),
    **rules_of(_fixed, "Size"),
    **rules_of(_normalised, "LayerNormalization", "SimplifiedLayerNormalization"),
    **rules_of(_skipped, "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    **rules_of(_product(), "MatMul", "MatMulInteger", "MatMulIntegerToFloat",
               "DynamicQuantizeMatMul"),
    **rules_of(_product(0, 3), "QLinearMatMul"),
    **rules_of(_fused_product, "FusedMatMul", "Gemm"),
    "MatMulNBits": _product_of_bits,
    "GatherBlockQuantized": _gathered_of_bits,
    "GatherElements": _shape_of(1),
    **rules_of(
        _reduced,
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
        "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
    ),
    **rules_of(_found, "ArgMax", "ArgMin"),
    **rules_of(_recurrent, "DynamicQuantizeLSTM", "GRU", "LSTM", "RNN"),
    "TopK": _top,
    "Range": _range,
    "ConstantOfShape": _filled,
    "Shape": _shape,
    "OneHot": _one_hot,
    "GridSample": _grid_sampled,
    "RoiAlign": _regions,
    "Einsum": _einsum,
    "NonMaxSuppression": _boxes,
    "NonZero": _places,
    "Compress": _compressed,
    "EmbedLayerNormalization": _embedded,
}  # fmt: skip
"""The rule of each operator; one of com.microsoft goes without its domain if ONNX has no other."""
