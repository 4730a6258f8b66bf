"""The lengths of each operator's results as expressions of the lengths of its inputs.

They are needed only where a length depends on a dimension with a range. The onnx package infers
numbers; each rule here is checked against it at several sizes (`ranged`).
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from arenite.planner.errors import SizeError
from arenite.planner.importers.onnx.call import Call, Shape, text, whole_number
from arenite.planner.sizes import Ranges, depends

_MOST_DENOMINATOR = 256
"""Of a scale that is exact in 32 bits."""


Rule: TypeAlias = Callable[[Call], list[Shape]]


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


def _ceil(length: int, divisor: int) -> int:
    return -(-length // divisor)


def _windows(call: Call, sides: Sequence[int], kernel: Sequence[int], *, ceil: bool) -> list[int]:
    """Return the positions of a window along each side."""
    rank = len(sides)
    strides = call.integers("strides") or (1,) * rank
    dilations = call.integers("dilations") or (1,) * rank
    pads = call.integers("pads") or (0,) * (2 * rank)
    mode = call.attributes.get("auto_pad", "NOTSET")
    lengths = []
    for axis, length in enumerate(sides):
        stride, taps = strides[axis], (kernel[axis] - 1) * dilations[axis] + 1
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            lengths.append(_ceil(length, stride))
            continue
        before, after = (pads[axis], pads[axis + rank]) if mode == "NOTSET" else (0, 0)
        room = length + before + after - taps
        if call.ranges.bounds(room)[0] < 0:
            raise SizeError(f"a window of {taps} does not fit into the length {text(length)}")
        count = (_ceil(room, stride) if ceil else room // stride) + 1
        if ceil:  # the last position begins inside the image or the padding in front
            count = call.ranges.smallest(count, _ceil(length + before, stride))
        lengths.append(count)
    return lengths


def _convolved(source: int = 0, weights: int = 1) -> Rule:
    def rule(call: Call) -> list[Shape]:
        batch, _, *sides = call.shape(source)
        filters, _, *kernel = call.shape(weights)
        stated = call.integers("kernel_shape") or tuple(kernel)
        return [(batch, filters, *_windows(call, sides, stated, ceil=False))]

    return rule


def _transposed_convolution(call: Call) -> list[Shape]:
    batch, _, *sides = call.shape()
    _, filters, *kernel = call.shape(1)
    rank = len(sides)
    if call.integers("output_shape"):
        raise SizeError("output_shape of ConvTranspose is fixed, while its input is not")
    strides = call.integers("strides") or (1,) * rank
    dilations = call.integers("dilations") or (1,) * rank
    pads = call.integers("pads") or (0,) * (2 * rank)
    extra = call.integers("output_padding") or (0,) * rank
    mode = call.attributes.get("auto_pad", "NOTSET")
    lengths = []
    for axis, length in enumerate(sides):
        taps = (kernel[axis] - 1) * dilations[axis] + 1
        whole = (length - 1) * strides[axis] + extra[axis] + taps
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            lengths.append(length * strides[axis])
        elif mode == "VALID":
            lengths.append(whole)
        else:
            lengths.append(whole - pads[axis] - pads[axis + rank])
    return [(batch, filters * call.integer("group", 1), *lengths)]


def _pooled(call: Call) -> list[Shape]:
    batch, channels, *sides = call.shape()
    kernel = call.integers("kernel_shape") or ()
    ceil = bool(call.integer("ceil_mode", 0))
    result = (batch, channels, *_windows(call, sides, kernel, ceil=ceil))
    return [result] * len(call.made)


def _global_pool(call: Call) -> list[Shape]:
    batch, channels, *sides = call.shape()
    if call.integer("channels_last", 0):
        return [(batch, *[1] * len(sides), sides[-1])]
    return [(batch, channels, *[1] * len(sides))]


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


def _reshaped(call: Call) -> list[Shape]:
    source = call.shape()
    target = call.stated("shape", 1) or ()
    copies = not call.integer("allowzero", 0)
    lengths = [
        source[axis] if copies and not depends(each) and each == 0 else each
        for axis, each in enumerate(target)
    ]
    total = math.prod(source)
    open_axes = [axis for axis, each in enumerate(lengths) if not depends(each) and each == -1]
    if open_axes:
        axis = open_axes[0]
        others = math.prod(each for at_, each in enumerate(lengths) if at_ != axis)
        if not depends(others) and others == 0:
            raise SizeError("-1 beside a length of 0 in shape of Reshape")
        lengths[axis] = total // others
    made = math.prod(lengths)
    if not call.ranges.same(total, made):
        raise SizeError(
            f"it makes {text(made)} elements of {text(total)}, as is possible at some sizes only"
        )
    return [tuple(lengths)]


def _flattened(call: Call) -> list[Shape]:
    source = call.shape()
    axis = call.axis(1, len(source))
    return [(math.prod(source[:axis]), math.prod(source[axis:]))]


def _axes(given: Iterable[int], rank: int) -> list[int]:
    return sorted(axis % rank for axis in given)


def _squeezed(call: Call) -> list[Shape]:
    source = call.shape()
    stated = call.stated("axes", 1)
    if stated is None:
        if any(depends(each) and call.ranges.bounds(each)[0] <= 1 for each in source):
            raise SizeError("axes of Squeeze are not stated, and a length is 1 at some sizes only")
        return [tuple(each for each in source if each != 1)]
    removed = _axes(stated, len(source))
    for axis in removed:
        call.require_same(source[axis], 1, "lengths")
    return [tuple(each for axis, each in enumerate(source) if axis not in removed)]


def _unsqueezed(call: Call) -> list[Shape]:
    stated = call.stated("axes", 1) or ()
    lengths = list(call.shape())
    for axis in _axes(stated, len(lengths) + len(stated)):
        lengths.insert(axis, 1)
    return [tuple(lengths)]


def _expanded(call: Call) -> list[Shape]:
    return [call.broadcast(call.shape(), call.elements(1))]


def _tiled(call: Call) -> list[Shape]:
    return [tuple(n * times for n, times in zip(call.shape(), call.elements(1), strict=True))]


def _transposed(call: Call) -> list[Shape]:
    source = call.shape()
    order = call.integers("perm") or tuple(reversed(range(len(source))))
    return [tuple(source[axis] for axis in order)]


def _joined(call: Call, shapes: Sequence[Shape]) -> list[Shape]:
    first = shapes[0]
    axis = call.axis(1, len(first))
    result = list(first)
    for shape in shapes[1:]:
        for at_, length in enumerate(shape):
            if at_ == axis:
                result[at_] = result[at_] + length
            else:
                result[at_] = call.require_same(result[at_], length, "lengths")
    return [tuple(result)]


def _concatenated(call: Call) -> list[Shape]:
    return _joined(call, [shape for shape in call.shapes if shape is not None])


def _quantised_concatenation(call: Call) -> list[Shape]:
    return _joined(call, [shape for shape in call.shapes[2::3] if shape is not None])


def _split(call: Call) -> list[Shape]:
    source = call.shape()
    axis = call.axis(0, len(source))
    parts = call.stated("split", 1)
    if parts is None:
        count = len(call.made)
        even = _ceil(source[axis], count)
        parts = (*[even] * (count - 1), source[axis] - even * (count - 1))
        if call.ranges.bounds(parts[-1])[0] < 0:
            raise SizeError(f"{text(source[axis])} cannot be split into {count} at all sizes")
    call.require_same(sum(parts), source[axis], "the parts of Split and the length of its input,")
    return [(*source[:axis], part, *source[axis + 1 :]) for part in parts]


def _sliced(call: Call) -> list[Shape]:
    source = list(call.shape())
    starts, ends = call.stated("starts", 1) or (), call.stated("ends", 2) or ()
    axes = call.stated("axes", 3) or range(len(starts))
    steps = call.stated("steps", 4) or (1,) * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        source[axis] = slice_length(call.ranges, source[axis], start, end, step)
    return [tuple(source)]


def slice_length(ranges: Ranges, length: int, start: int, end: int, step: int) -> int:
    """Return how many elements a slice takes of an axis."""
    if depends(step):
        raise SizeError(f"the step {text(step)} of a slice depends on the sizes")
    if step > 0:
        first = from_front(ranges, length, start, 0, length)
        taken = from_front(ranges, length, end, 0, length) - first
    else:
        first = from_front(ranges, length, start, 0, length - 1)
        taken = first - from_front(ranges, length, end, -1, length - 1)
    return ranges.largest(0, _ceil(taken, abs(step)))


def from_front(ranges: Ranges, length: int, place: int, low: int, high: int) -> int:
    """Return a place of a slice, counted from the front and inside the axis."""
    sign = ranges.sign(place)
    if sign is None and ranges.bounds(place)[0] < 0:
        raise SizeError(f"the end {text(place)} of a slice is below 0 at some sizes only")
    if sign == -1:
        if not depends(place) and place < -ranges.bounds(length)[1]:
            return low  # a number that stands for no limit overflows in an expression
        place = place + length
    return ranges.largest(low, ranges.smallest(place, high))


def _gathered(call: Call) -> list[Shape]:
    data = call.shape()
    axis = call.axis(0, len(data))
    return [(*data[:axis], *call.shape(1), *data[axis + 1 :])]


def _gathered_nd(call: Call) -> list[Shape]:
    data, indices = call.shape(), call.shape(1)
    batch = call.integer("batch_dims", 0)
    return [(*indices[:-1], *data[batch + indices[-1] :])]


def _shape_of(position: int) -> Rule:
    return lambda call: [call.shape(position)] * len(call.made)


def _padded(call: Call) -> list[Shape]:
    lengths = list(call.shape())
    pads = call.stated("pads", 1) or ()
    axes = call.elements(3) if call.has(3) else range(len(lengths))
    count = len(pads) // 2
    for number, axis in enumerate(axes):
        lengths[axis] = lengths[axis] + pads[number] + pads[number + count]
    return [tuple(lengths)]


def _resized(call: Call) -> list[Shape]:
    source = call.shape()
    places = (1, 3) if call.kind == "Upsample" or call.opset < 11 else (2, 3)
    axes = call.integers("axes") or tuple(range(len(source)))
    result = list(source)
    if call.has(places[1]) and call.shape(places[1]) != (0,):
        if call.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
            raise SizeError("keep_aspect_ratio_policy of Resize supports stretch, as sizes vary")
        for axis, size in zip(axes, call.elements(places[1]), strict=True):
            length = source[axis]
            ratio = Fraction(int(size), int(length)) if length else Fraction(1)
            if not call.ranges.same(size * ratio.denominator, length * ratio.numerator):
                raise SizeError(
                    f"its scale, {text(size)} to {text(length)}, is not the same at all sizes; "
                    "choose steps of the range by which it is"
                )
            result[axis] = size
        return [tuple(result)]
    for axis, scale in zip(axes, call.stated("scales", places[0]) or (), strict=True):
        result[axis] = _scaled(source[axis], scale)
    return [tuple(result)]


def _scaled(length: int, scale: Any) -> int:
    if depends(scale) or not isinstance(scale, int | float | Fraction):
        raise SizeError("its scale is not the same at all sizes; choose steps of the range by "
                        "which it is")  # fmt: skip
    if not depends(length):
        return math.floor(int(length) * float(scale))
    exact = Fraction(scale)
    if exact.denominator > _MOST_DENOMINATOR:
        raise SizeError(f"the scale {scale} is no exact fraction, {text(length)} times it rounds")
    return length * exact.numerator // exact.denominator


def _reduced(call: Call) -> list[Shape]:
    source = call.shape()
    axes = call.stated("axes", 1)
    if not axes:
        if call.integer("noop_with_empty_axes", 0):
            return [source]
        axes = tuple(range(len(source)))
    return [_without(call, source, _axes(axes, len(source)))]


def _found(call: Call) -> list[Shape]:
    """Of ArgMax and ArgMin."""
    source = call.shape()
    return [_without(call, source, [call.axis(0, len(source))])]


def _without(call: Call, source: Shape, axes: Sequence[int]) -> Shape:
    kept = call.integer("keepdims", 1)
    return tuple(
        1 if axis in axes else length
        for axis, length in enumerate(source)
        if kept or axis not in axes
    )


def _recurrent(call: Call) -> list[Shape]:
    length, batch, _ = call.shape()
    ways, _, hidden = call.shape(2)
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
    count = _ceil(limit - start, delta) if delta > 0 else _ceil(start - limit, -delta)
    return [(call.ranges.largest(0, count),)]


def _filled(call: Call) -> list[Shape]:
    return [call.elements(0)]


def _one_hot(call: Call) -> list[Shape]:
    lengths = list(call.shape())
    axis = call.integer("axis", -1)
    lengths.insert(axis if axis >= 0 else axis + len(lengths) + 1, call.elements(1)[0])
    return [tuple(lengths)]


def _depth_to_space(call: Call) -> list[Shape]:
    batch, channels, rows, columns = call.shape()
    block = call.integer("blocksize", 1)
    return [(batch, channels // (block * block), rows * block, columns * block)]


def _space_to_depth(call: Call) -> list[Shape]:
    batch, channels, rows, columns = call.shape()
    block = call.integer("blocksize", 1)
    if not all(call.ranges.same(n % block, 0) for n in (rows, columns)):
        raise SizeError(f"blocksize={block} divides the sides only at some sizes")
    return [(batch, channels * block * block, rows // block, columns // block)]


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


def _attention(call: Call) -> list[Shape]:
    """Of Attention of com.microsoft, with the keys and values that it saves."""
    batch, rows, _ = call.shape()
    heads = call.integer("num_heads", 1)
    sizes = call.integers("qkv_hidden_sizes")
    hidden = sizes[2] if sizes else call.shape(2)[0] // 3
    total = rows + (call.shape(4)[3] if call.has(4) else 0)
    if call.has(4):
        call.require_same(call.shape(4)[1], batch, "lengths")
    if call.has(3) and len(call.shape(3)) == 2:
        call.require_same(call.shape(3)[1], total, "lengths")
    saved = (2, batch, heads, total, hidden // heads)
    return [(batch, rows, hidden), saved][: len(call.made)]


def _many_headed_attention(call: Call) -> list[Shape]:
    query = call.shape()
    batch, rows = query[:2]
    heads = call.integer("num_heads", 1)
    if len(query) != 3 or not call.has(1) or not call.has(2):
        raise SizeError("packed operands are unsupported for a range; separate query, key, value")
    key, value = call.shape(1), call.shape(2)
    total, width = (key[1], value[2] // heads) if len(key) == 3 else (key[2], value[3])
    total += call.shape(6)[2] if call.has(6) else 0
    saved = [(batch, heads, total, call.shape()[2] // heads), (batch, heads, total, width)]
    return [(batch, rows, heads * width), *saved][: len(call.made)]


def _embedded(call: Call) -> list[Shape]:
    """Of EmbedLayerNormalization: the embedding, how long each text is, the sum."""
    batch, rows = call.shape()
    for position in (1, 7, 8):  # segments, a mask, and positions
        if call.has(position):
            call.broadcast(call.shape(), call.shape(position))
    width = call.shape(2)[1]
    return [(batch, rows, width), (batch,), (batch, rows, width)][: len(call.made)]


def _of(rule: Rule, *kinds: str) -> dict[str, Rule]:
    return dict.fromkeys(kinds, rule)


_RULES: Mapping[str, Rule] = {
    **_of(
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
    **_of(
        _broadcast,
        "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal",
        "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul",
        "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
    ),
    **_of(_broadcast_of(0, 3), "QLinearAdd", "QLinearMul"),
    **_of(_scalars, "DynamicQuantizeLinear"),
    **_of(_fixed, "Size"),
    **_of(_normalised, "LayerNormalization", "SimplifiedLayerNormalization"),
    **_of(_skipped, "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    **_of(_convolved(), "Conv", "ConvInteger", "FusedConv", "nchwc.Conv"),
    **_of(_convolved(0, 3), "QLinearConv"),
    **_of(_transposed_convolution, "ConvTranspose"),
    **_of(_pooled, "AveragePool", "LpPool", "MaxPool", "QLinearAveragePool"),
    **_of(_global_pool, "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool",
          "QLinearGlobalAveragePool"),
    **_of(_product(), "MatMul", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul"),
    **_of(_product(0, 3), "QLinearMatMul"),
    **_of(_fused_product, "FusedMatMul", "Gemm"),
    "Reshape": _reshaped,
    "Flatten": _flattened,
    "Squeeze": _squeezed,
    "Unsqueeze": _unsqueezed,
    "Expand": _expanded,
    "Tile": _tiled,
    "Transpose": _transposed,
    "Concat": _concatenated,
    "QLinearConcat": _quantised_concatenation,
    "Split": _split,
    "Slice": _sliced,
    "Gather": _gathered,
    "GatherElements": _shape_of(1),
    "GatherND": _gathered_nd,
    "Pad": _padded,
    **_of(_resized, "Resize", "Upsample"),
    **_of(
        _reduced,
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
        "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
    ),
    **_of(_found, "ArgMax", "ArgMin"),
    **_of(_recurrent, "GRU", "LSTM", "RNN"),
    "TopK": _top,
    "Range": _range,
    "ConstantOfShape": _filled,
    "Shape": _shape,
    "OneHot": _one_hot,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "GridSample": _grid_sampled,
    "RoiAlign": _regions,
    "Einsum": _einsum,
    "NonMaxSuppression": _boxes,
    "NonZero": _places,
    "Compress": _compressed,
    "com.microsoft.Attention": _attention,
    "MultiHeadAttention": _many_headed_attention,
    "EmbedLayerNormalization": _embedded,
}  # fmt: skip
"""The rule of each operator; one of com.microsoft goes without its domain if ONNX has no other."""
