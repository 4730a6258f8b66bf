"""Lower a whole TFLite model to a program of our own operators."""

import struct
from collections.abc import Container

import numpy as np

from arenite.planner.dtypes import DType
from arenite.planner.errors import AreniteError, ModelFormatError
from arenite.planner.program import Array, Program
from arenite.planner.tensors import Tensor, TensorKind
from arenite.runtime.lowering.builder import Builder
from arenite.runtime.lowering.errors import NotLoweredError, UnsupportedOperatorsError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.tflite import (  # noqa: F401  # so that their translators are listed
    batches,
    detection,
    elementwise,
    gathering,
    linear,
    movement,
    pooling,
    recurrent,
    resizing,
    spectrum,
    variables,
)
from arenite.runtime.lowering.tflite.registry import TRANSLATORS
from arenite.runtime.lowering.tflite.shapes import fold, restate
from arenite.runtime.lowering.tflite.spectrum import check_complex
from arenite.runtime.lowering.tflite.translation import Translation, options_of
from arenite.runtime.lowering.types import check_input_types


def lower_tflite(
    model: Program, supported: Container[str] | None = None, *, means_as_pools: bool = True
) -> Program:
    """Lower a TFLite model to a program that the core runs.

    Args:
        model: A model read with its weights.
        supported: Names of the operators that the core runs; None for all.
        means_as_pools: Whether a mean over rows and columns becomes a pool. TensorFlow Lite
            rounds the two differently.

    Raises:
        ModelFormatError: A state starts from what its type does not hold.
        UnsupportedModelError: An input is of a type that the core does not have.
        UnsupportedOperatorsError: The core lacks an operator, or the form it has here.
    """
    check_input_types(model)
    builder = Builder(model, supported, means_as_pools=means_as_pools)
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
            _translate(Translation(builder, step, producers, options_of(step)))
        except NotLoweredError as reason:
            refused.append((step.name, step.operator.label, str(reason)))
            unknown.update(step.writes)
    if refused:
        raise UnsupportedOperatorsError(
            refused,
            "`arenite plan --target generic` plans the graph as written, --target litert what "
            "LiteRT keeps if that runs it",
        )
    return builder.finish()


def _initial(tensor: Tensor) -> Array | None:
    """Return what TFLite starts a state from: of int8 what stands for 0, of all else zeros."""
    stated = tensor.quantisation
    if tensor.dtype is not DType.INT8 or stated is None or not stated.zero_point:
        return None
    if not -128 <= stated.zero_point <= 127:
        raise ModelFormatError(
            f"tensor {tensor.name!r}: its zero point, {stated.zero_point}, is no int8"
        )
    return np.full(tensor.shape, stated.zero_point, np.int8)


def _check_integers(t: Translation) -> None:
    tensors = t.builder.model.tensors
    names = (*t.step.reads, *t.step.writes)
    if not TRANSLATORS.takes_int16(t.kind) and any(tensors[n].dtype is DType.INT16 for n in names):
        raise NotLoweredError("it computes in int16")


def _translate(t: Translation) -> None:
    """Translate a step.

    Raises:
        NotLoweredError: Its form has no kernel, or is not the operator's: files are hostile, and
            what a translator stumbles over is an operand, an axis or a size that cannot be.
    """
    try:
        _translate_as_stated(t)
    except AreniteError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, struct.error) as error:
        raise NotLoweredError(f"it does not have the form of its kind: {error}") from error


def _translate_as_stated(t: Translation) -> None:
    check_complex(t)
    restate(t)
    if fold(t):
        return
    translate = TRANSLATORS.find(t.kind)
    if translate is None:
        raise NotLoweredError("there is no kernel of ours")
    _check_integers(t)
    translate(t)
