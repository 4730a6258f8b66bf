"""Gemm and MatMul."""

import math

import numpy as np

from arenite.planner import Array, DType
from arenite.planner.sizes import depends, same
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import StoredValue, as_written
from arenite.runtime.lowering.onnx.blocks import blocks_of, product
from arenite.runtime.lowering.onnx.elementwise import combine
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.operators.elementwise import BinaryFunction
from arenite.runtime.operators.linear import FullyConnected, MatMul


@translates("Gemm")
def gemm(t: OnnxTranslation) -> None:
    """Translate alpha * A * B + beta * C."""
    require_type(t.dtype, DType.FLOAT32)
    if _is_gemm_of_blocks(t):
        return
    if t.builder.array(t.source(1)) is None:
        _gemm_of_two(t)
        return
    alpha, beta = t.attribute("alpha", 1.0), t.attribute("beta", 1.0)
    weights = t.array(1) if t.attribute("transB", 0) else t.array(1).T
    if t.attribute("transA", 0):
        source = t.builder.transposed(t.value(0), (1, 0))
        source = t.builder.as_written(source, t.target)
    else:
        source, weights = _flat_source(t, weights)
    if alpha != 1.0:
        weights = (weights * np.float32(alpha)).astype(np.float32)
    addend = t.builder.array(t.source(2)) if t.has(2) else None
    bias: StoredValue | None = None
    num_outputs = weights.shape[0]
    is_bias = _is_bias(addend, num_outputs)
    if addend is not None and is_bias:
        vector = np.broadcast_to(addend.reshape(-1) * np.float32(beta), (num_outputs,))
        bias = t.builder.constant(np.asarray(vector, np.float32), t.source(2))
    separate = t.has(2) and not is_bias
    if separate and beta != 1.0:
        raise unsupported("beta", beta, "1 unless input C has one number an output")
    constant = t.builder.constant(weights, t.source(1))
    name = f"{t.target}/product" if separate else ""
    result = t.emit(FullyConnected(), [source, constant, bias], name=name)
    if separate:
        result = combine(t, BinaryFunction.ADD, result, t.value(2), t.target)
    t.finish(result)


def _is_bias(addend: Array | None, num_outputs: int) -> bool:
    """Tell whether an addend has one number for each output, or one for all."""
    return (
        addend is not None
        and addend.size in (1, num_outputs)
        and (addend.ndim < 2 or addend.shape[-1] == addend.size)
    )


def _is_gemm_of_blocks(t: OnnxTranslation) -> bool:
    """Translate A * B + C with weights in blocks; tell whether that was done."""
    if t.attribute("transA", 0) or t.attribute("alpha", 1.0) != 1.0:
        return False
    blocks = blocks_of(t, 1, transposed=not t.attribute("transB", 0))
    if blocks is None:
        return False
    addend = t.builder.array(t.source(2)) if t.has(2) else None
    if t.has(2) and not _is_bias(addend, blocks.codes.shape[0]):
        return False
    if addend is not None:
        addend = addend * np.float32(t.attribute("beta", 1.0))
    product(t, blocks, addend)
    return True


def _gemm_of_two(t: OnnxTranslation) -> None:
    """Translate alpha * A * B + beta * C where B is made in the run."""
    operands = [
        t.builder.transposed(t.value(position), (1, 0))
        if t.attribute(name, 0)
        else t.value(position)
        for position, name in ((0, "transA"), (1, "transB"))
    ]
    (one, transpose_a), (other, transpose_b) = (_matrix(t, each) for each in operands)
    alpha = t.attribute("alpha", 1.0)
    rest = (alpha != 1.0) + t.has(2)
    value = t.emit(
        MatMul(transpose_a=transpose_a, transpose_b=transpose_b), [one, other],
        name=f"{t.target}/product" if rest else "",
    )  # fmt: skip
    if alpha != 1.0:
        name = f"{t.target}/scaled" if t.has(2) else t.target
        value = _scaled(t, value, alpha, name)
    if t.has(2):
        addend, beta = t.value(2), t.attribute("beta", 1.0)
        if beta != 1.0:
            addend = _scaled(t, addend, beta, f"{t.target}/addend")
        value = combine(t, BinaryFunction.ADD, value, addend, t.target)
    t.finish(value)


def _scaled(t: OnnxTranslation, value: StoredValue, factor: float, name: str) -> StoredValue:
    constant = t.builder.constant(np.float32(factor).reshape(1), f"{name}/factor")
    return combine(t, BinaryFunction.MULTIPLY, value, constant, name)


@translates("MatMul", "com.microsoft.FusedMatMul")
def matmul(t: OnnxTranslation) -> None:
    """Translate a product of matrices, the second constant or not."""
    require_type(t.dtype, DType.FLOAT32)
    for name in ("transBatchA", "transBatchB"):
        if t.attribute(name, 0):
            raise unsupported(name, t.attribute(name, 0), 0)
    alpha = t.attribute("alpha", 1.0)
    is_plain = not t.attribute("transA", 0) and len(t.value(0).shape) > 1
    blocks = blocks_of(t, 1, transposed=not t.attribute("transB", 0))
    if blocks is not None and is_plain and alpha == 1.0:
        product(t, blocks)
        return
    weights = t.builder.array(t.source(1))
    if weights is not None and weights.ndim == 2 and is_plain:
        columns = weights if t.attribute("transB", 0) else weights.T
        source, columns = _flat_source(t, columns)
        constant = t.builder.constant((columns * np.float32(alpha)), t.source(1))
        result = t.emit(
            FullyConnected(), [source, constant, None], order=_leading(t, source), name=""
        )
        t.finish(result)
        return
    one, other = t.value(0), t.value(1)
    if len(one.shape) < 2 or len(other.shape) < 2:
        raise NotLoweredError("an operand of rank 1 is unsupported, reshape it to a matrix")
    one, transpose_a = _matrix(t, one)
    other, transpose_b = _matrix(t, other)
    operator = MatMul(
        transpose_a=transpose_a ^ bool(t.attribute("transA", 0)),
        transpose_b=transpose_b ^ bool(t.attribute("transB", 0)),
    )
    value = t.emit(operator, [one, other], name="" if alpha == 1.0 else f"{t.target}/product")
    t.finish(value if alpha == 1.0 else _scaled(t, value, alpha, t.target))


def _leading(t: OnnxTranslation, source: StoredValue) -> tuple[int, ...]:
    """Return the order of a product whose rows are stored as those of its source."""
    return source.order if len(source.order) == len(t.shape) else as_written(len(t.shape))


def _flat_source(t: OnnxTranslation, weights: Array) -> tuple[StoredValue, Array]:
    """Return the left operand with its last axis stored last, and the weights for it.

    A flattened image stays channels last, and the weights are put in its order.
    """
    value = t.value(0)
    flattened = t.producers.get(t.source(0))
    if (
        flattened is not None
        and flattened.operator.label in ("Flatten", "Reshape")
        and len(value.shape) == 2
    ):
        image = t.builder.value(flattened.inputs[0])
        if (
            image.array is None
            and len(image.shape) > 2
            and same(image.shape[0], value.shape[0])
            and image.order[0] == 0
            and same(math.prod(image.shape[1:]), value.shape[1])
            and not any(map(depends, image.shape[1:]))
        ):
            order = tuple(axis - 1 for axis in image.order[1:])
            columns = weights.reshape(-1, *image.shape[1:])
            columns = columns.transpose(0, *(axis + 1 for axis in order))
            flat = StoredValue(image.tensor, image.dtype, value.shape, (0, 1), image.offset)
            return flat, columns.reshape(weights.shape)
    if value.order[-1] != len(value.shape) - 1:
        value = t.builder.as_written(value, t.target)
    return value, weights


def _matrix(t: OnnxTranslation, value: StoredValue) -> tuple[StoredValue, bool]:
    """Return an operand stored as a batch of matrices, and whether they are transposed."""
    rank = len(value.shape)
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    if value.array is None and value.order == swapped:
        return t.builder.transposed(value, swapped), True
    return t.builder.as_written(value, t.target), False
