"""Lower a whole TFLite model to a program of our own operators.

Converters leave shape arithmetic in a model, which is computed here. A file may state a dimension
as 1 that is only known at run time; it is inferred from the shapes and constants before it.
"""

import itertools
import math
import struct
from functools import partial

import numpy as np

from arenite.planner import AreniteError, Array, DType, Program, Tensor, TensorKind
from arenite.planner.errors import ModelFormatError
from arenite.planner.importers.tflite import (
    MAX_VALUES,
    SHAPE,
    SHAPES,
    VALUES,
    MisfitError,
    Resized,
    Shape,
    UnknownShapeError,
)
from arenite.planner.operators import Imported
from arenite.planner.sizes import depends
from arenite.runtime.lowering.builder import ProgramBuilder
from arenite.runtime.lowering.errors import NotLoweredError, UnsupportedOperatorsError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.tflite import (  # noqa: F401  # so that their translators are listed
    custom,
    elementwise,
    linear,
    movement,
    pooling,
    recurrent,
    special,
)
from arenite.runtime.lowering.tflite.elementwise import BINARY, CLAMPS, UNARY
from arenite.runtime.lowering.tflite.loops import carry
from arenite.runtime.lowering.tflite.pooling import REDUCTIONS
from arenite.runtime.lowering.tflite.special import check_complex
from arenite.runtime.lowering.tflite.translation import (
    TRANSLATORS,
    TfliteTranslation,
    options_of,
    translates,
)
from arenite.runtime.lowering.translation import check_input_types


def fold(t: TfliteTranslation) -> bool:
    """Make the outputs constants if their values are known; return whether they are."""
    evaluate = VALUES.get(t.kind)
    shapes = [t.builder.shape(name) for name in t.step.outputs]
    if evaluate is None or t.is_quantised or any(map(_is_large, shapes)):
        return False
    arrays = [t.builder.array(name) for name in t.step.inputs if name]
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays) and t.kind != SHAPE:
        return False
    asked = _asked(t)
    if asked.integer("FusedActivationFunction"):
        return False
    try:
        with np.errstate(all="raise"):
            found = evaluate(asked, known)
    except (MisfitError, ArithmeticError, LookupError, TypeError, ValueError):
        return False
    if [array.shape for array in found] != shapes:
        return False
    for name, array in zip(t.step.outputs, found, strict=True):
        elements = array.astype(t.builder.model.tensors[name].dtype.label)
        t.builder.bind(name, t.builder.constant(elements, name))
    return True


def restate(t: TfliteTranslation) -> None:
    """Give the outputs the shapes that follow from the inputs, if the file states others.

    Raises:
        NotLoweredError: The inputs do not fit together, or a window into its input.
    """
    infer = SHAPES.get(t.kind)
    if infer is None:
        return
    asked = _asked(t)
    try:
        found = infer(asked)
    except UnknownShapeError:
        return  # whether it is run all the same is for its translator to say
    except MisfitError as reason:
        hint = "if the model leaves the size of its input open, give it with --shape"
        raise NotLoweredError(
            f"{reason}; {hint}" if t.kind in _WINDOWS else str(reason)
        ) from reason
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return
    if len(found) == len(asked.outputs):
        for name, stated, shape in zip(t.step.outputs, asked.outputs, found, strict=True):
            if shape != stated:
                if t.builder.model.dimensions:
                    raise NotLoweredError(f"its output {name!r} is {shape}, stated is {stated}")
                t.builder.restate_shape(name, shape)


def _asked(t: TfliteTranslation) -> Resized:
    inputs = [_shape(t, name) if name else () for name in t.step.inputs]
    arrays = {p: t.builder.array(name) for p, name in enumerate(t.step.inputs) if name}
    values = {p: each for p, each in arrays.items() if each is not None and each.dtype.kind == "i"}
    outputs = [t.builder.shape(name) for name in t.step.outputs]
    attributes = t.step.operator.attributes if isinstance(t.step.operator, Imported) else {}
    return Resized(inputs, values, outputs, t.options, attributes)


def _shape(t: TfliteTranslation, name: str) -> Shape:
    if t.builder.varies(name):
        return t.builder.model.tensors[name].shape
    stored = t.builder.value(name).shape
    return stored[:-1] if t.is_complex(name) else stored


def _is_large(shape: Shape) -> bool:
    return math.prod(shape) > MAX_VALUES


_WINDOWS = frozenset(
    {"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "L2_POOL_2D", "MAX_POOL_2D"}
)


def lower_tflite(
    model: Program, *, means_as_pools: bool = True, keeps_bytes: bool = False
) -> Program:
    """Lower a TFLite model to a program that the core runs.

    Args:
        model: A model read with its weights.
        means_as_pools: Whether a mean over rows and columns becomes a pool. TensorFlow Lite
            rounds the two differently.
        keeps_bytes: Whether convolutions and matrix products of floats keep weights of bytes;
            else their weights become the floats that the bytes stand for.

    Raises:
        ModelFormatError: The initial value of a state does not fit its type.
        UnsupportedModelError: An input is of a type that the core does not have.
        UnsupportedOperatorsError: The core lacks an operator, or the form it has here.
    """
    check_input_types(model)
    builder = ProgramBuilder(model, means_as_pools=means_as_pools, keeps_bytes=keeps_bytes)
    for tensor in model.tensors.values():
        if tensor.kind is TensorKind.STATE:
            builder.add_state(tensor.name, _initial(tensor))
    for name in model.input_tensors:
        builder.add_input(name, as_written(len(model.tensors[name].shape)))
    producers = {name: step for step in model.steps for name in step.outputs}
    refused: list[tuple[str, str, str]] = []
    unknown: set[str] = set()
    for step in model.steps:
        if unknown.intersection(step.reads):
            unknown.update(step.writes)
            continue
        try:
            _translate(TfliteTranslation(builder, step, producers, options_of(step)))
        except NotLoweredError as reason:
            refused.append((step.name, step.operator.label, str(reason)))
            unknown.update(step.writes)
    if refused:
        raise UnsupportedOperatorsError(
            refused,
            "`arenite plan --target generic` plans the graph as written, --target litert what "
            "LiteRT keeps if that runs it",
        )
    for name in model.output_tensors:
        builder.bind(name, builder.as_written(builder.value(name), name))
    return builder.finish()


@translates("WHILE", "STABLEHLO_WHILE", int16=True)
def loop(t: TfliteTranslation) -> None:
    """Translate a loop: its programs are lowered as the model is."""
    builder = t.builder
    carry(
        t,
        partial(
            lower_tflite, means_as_pools=builder.means_as_pools, keeps_bytes=builder.keeps_bytes
        ),
    )


def _initial(tensor: Tensor) -> Array | None:
    """Return the initial value of a TFLite state: its zero point for int8, else zeros."""
    stated = tensor.quantisation
    if tensor.dtype is not DType.INT8 or stated is None or not stated.zero_point:
        return None
    if not -128 <= stated.zero_point <= 127:
        raise ModelFormatError(
            f"tensor {tensor.name!r}: its zero point, {stated.zero_point}, is no int8"
        )
    return np.full(tensor.shape, stated.zero_point, np.int8)


_SCALED_16 = frozenset(
    {
        "ADD", "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "LEAKY_RELU",
        "LOGISTIC", "MAXIMUM", "MAX_POOL_2D", "MEAN", "MINIMUM", "MUL", "REDUCE_MAX", "REDUCE_MIN",
        "RELU", "RELU6", "RELU_N1_TO_1", "SUB", "TANH", "TRANSPOSE_CONV",
    }
)  # fmt: skip
"""Operators with kernels of quantised integers of 16 bits."""
_OF_ONE_SCALE_16 = frozenset(
    {"AVERAGE_POOL_2D", "MAXIMUM", "MAX_POOL_2D", "MINIMUM", "REDUCE_MAX", "REDUCE_MIN"}
)
_FRACTIONS_16 = frozenset({"LOGISTIC", "TANH"})
_FRACTION = 2.0**-15


def _check_integers(t: TfliteTranslation) -> None:
    """Check that a step has a kernel if it reads or makes integers of 16 bits, or 64-bit floats.

    Raises:
        NotLoweredError: It has none, or only for other scales.
    """
    tensors = t.builder.model.tensors
    if any(tensors[n].dtype is DType.FLOAT64 for n in (*t.step.reads, *t.step.writes)):
        raise NotLoweredError("element type float64 is unsupported for this operator")
    names = [n for n in (*t.step.reads, *t.step.writes) if tensors[n].dtype is DType.INT16]
    if not names or TRANSLATORS.takes_int16(t.kind):
        return
    if t.kind not in _SCALED_16 or t.dtype is not DType.INT16:
        raise NotLoweredError("element type int16 is unsupported for this operator")
    stated = [t.builder.stated_quantisation(name) for name in names]
    if any(each is None or len(each.scales) != 1 or each.zero_point for each in stated):
        raise NotLoweredError(
            "int16 tensors without one scale and a zero point of 0 are unsupported for this "
            "operator"
        )
    scales = {each.scales[0] for each in stated if each is not None}
    if t.kind in _OF_ONE_SCALE_16 and len(scales) > 1:
        raise NotLoweredError(
            f"int16 tensors of scales {sorted(scales)} are unsupported for this operator, "
            "supported: one scale"
        )
    made = stated[-1]
    if t.kind in _FRACTIONS_16 and made is not None and made.scales[0] != _FRACTION:
        raise NotLoweredError(
            f"an int16 output of scale {made.scales[0]} is unsupported, supported: 1/32768"
        )


def _translate(t: TfliteTranslation) -> None:
    """Translate a step.

    Raises:
        NotLoweredError: Its form has no kernel, or is not the operator's: files are hostile, and
            a translator raises other errors for impossible operands, axes or sizes.
    """
    try:
        _translate_as_stated(t)
    except AreniteError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, struct.error) as error:
        raise NotLoweredError(f"malformed operator: {error}") from error


_SIZED = frozenset(
    {
        *UNARY, *BINARY, *CLAMPS, *REDUCTIONS, "ADD_N", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CAST",
        "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE", "ELU",
        "EXPAND_DIMS", "FULLY_CONNECTED", "GATHER", "GELU", "L2_NORMALIZATION", "LEAKY_RELU",
        "LOG_SOFTMAX", "MAX_POOL_2D", "PAD", "QUANTIZE", "RESHAPE", "SELECT", "SELECT_V2",
        "SOFTMAX", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "SQUEEZE", "TRANSPOSE", "TRANSPOSE_CONV",
    }
)  # fmt: skip
"""Operators whose translators keep sizes that depend on dimensions."""


def _translate_as_stated(t: TfliteTranslation) -> None:
    check_complex(t)
    shapes = map(t.builder.shape, (*t.step.reads, *t.step.writes))
    if t.kind not in _SIZED and any(map(depends, itertools.chain.from_iterable(shapes))):
        raise NotLoweredError("a shape with a range of sizes is unsupported for this operator")
    restate(t)
    if fold(t):
        return
    translate = TRANSLATORS.find(t.kind)
    if translate is None:
        raise NotLoweredError(
            "an input is not constant" if t.kind in VALUES else "no kernel for this operator"
        )
    _check_integers(t)
    translate(t)
