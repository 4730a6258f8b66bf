"""Products with weights of 4 or 8 bits in blocks, and look-ups of rows of such weights."""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.helper

from arenite.planner import Array, DType
from arenite.runtime.lowering.blocks import LENGTHS, Blocks, unpacked_codes
from arenite.runtime.lowering.errors import NotLoweredError, require_type, unsupported
from arenite.runtime.lowering.layout import Shape, StoredValue, as_written
from arenite.runtime.lowering.onnx.quantisation import constants_of
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, translates
from arenite.runtime.operators.base import FLOAT_BYTES
from arenite.runtime.operators.blocks import BlockGather, BlockProduct

_INTEGERS = 4
"""The accuracy_level of a product that may round rows to integers of 8 bits."""


@translates("com.microsoft.MatMulNBits")
def matmul_of_bits(t: OnnxTranslation) -> None:
    """Translate MatMulNBits. Products are of floats, or with accuracy_level 4 of rounded rows."""
    require_type(t.dtype, DType.FLOAT32)
    if t.has(4):
        raise NotLoweredError("g_idx, an order of the inputs, is unsupported")
    bits, length = t.attribute("bits", 4), t.attribute("block_size", 0)
    inputs, outputs = t.attribute("K", 0), t.attribute("N", 0)
    if bits not in (4, 8):
        raise unsupported("bits", bits, 4, 8)
    if length not in LENGTHS:
        raise unsupported("block_size", length, *LENGTHS)
    blocks = -(-inputs // length)
    codes = unpacked_codes(t.array(1).reshape(outputs, -1), bits)
    scales = t.array(2).astype(np.float32).reshape(outputs, blocks)
    zeros = t.optional_array(3)
    if zeros is not None and zeros.dtype == np.uint8:
        zeros = unpacked_codes(zeros.reshape(outputs, -1), bits)[:, :blocks]
    elif zeros is not None:
        zeros = zeros.astype(np.float32).reshape(outputs, blocks)
    bias = t.optional_array(5)
    rounds = t.attribute("accuracy_level", 0) == _INTEGERS
    product(t, Blocks(codes[:, :inputs], scales, zeros, bits, length), bias, rounds=rounds)


@translates("com.microsoft.GatherBlockQuantized")
def gather_of_blocks(t: OnnxTranslation) -> None:
    """Translate a look-up of rows whose last axis is in blocks."""
    require_type(t.dtype, DType.FLOAT32)
    data = t.array(0)
    bits, length = t.attribute("bits", 4), t.attribute("block_size", 128)
    if data.ndim != 2 or t.attribute("gather_axis", 0) != 0:
        raise unsupported("gather_axis", t.attribute("gather_axis", 0), "0 of a matrix")
    if t.attribute("quantize_axis", 1) not in (1, -1):
        raise unsupported("quantize_axis", t.attribute("quantize_axis", 1), 1)
    is_packed = data.dtype == np.uint8
    zeros = t.optional_array(3)
    if is_packed:
        data = unpacked_codes(data, bits)
        zeros = None if zeros is None else unpacked_codes(zeros, bits)
        middle = 1 << (bits - 1)
        if zeros is None:
            zeros = np.full(t.array(2).shape, middle, np.uint8)
    scales = t.array(2).astype(np.float32)
    if zeros is not None:
        zeros = zeros[:, : scales.shape[1]]
    gathered(t, _blocks(data, scales, zeros, length, bits if is_packed else None), t.value(1))


def product(
    t: OnnxTranslation, weights: Blocks, bias: Array | None = None, *, rounds: bool = False
) -> None:
    """Multiply the first operand by weights in blocks and finish the step.

    Args:
        t: The operator.
        weights: Its weights.
        bias: Of each output, or one of all.
        rounds: Whether blocks of rows are rounded to integers of 8 bits.
    """
    source = t.value(0)
    if source.order[-1] != len(source.shape) - 1:
        source = t.builder.as_written(source, t.target)
    order = source.order if len(source.order) == len(t.shape) else as_written(len(t.shape))
    addend = None
    if bias is not None:
        vector = np.broadcast_to(bias.reshape(-1), (weights.codes.shape[0],))
        addend = t.builder.constant(np.asarray(vector, np.float32), f"{t.target}/bias")
    operator = BlockProduct(bits=weights.bits, block=weights.length, rounds=rounds)
    operands = [source, *_constants(t, weights, t.source(1)), addend]
    t.finish(t.emit(operator, operands, order=order))


def gathered(t: OnnxTranslation, weights: Blocks, indices: StoredValue) -> None:
    """Read rows of weights in blocks and finish the step."""
    where = t.builder.as_written(indices, t.target)
    require_type(where.dtype, DType.INT32, DType.INT64)
    operator = BlockGather(bits=weights.bits, block=weights.length, rows=weights.codes.shape[0])
    t.finish(t.emit(operator, [where, *_constants(t, weights, t.source(0))]))


def _constants(t: OnnxTranslation, weights: Blocks, name: str) -> list[StoredValue | None]:
    """Return the constants of weights, which a look-up and a product of one table share."""
    codes, scales, zeros = weights.packed()
    return [
        _constant(t, codes, f"{name}/codes"),
        _constant(t, scales, f"{name}/scales"),
        None if zeros is None else _constant(t, zeros, f"{name}/zeros"),
    ]


def _constant(t: OnnxTranslation, array: Array, hint: str) -> StoredValue:
    """Return a constant with these elements, the same one for equal elements."""
    content = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
    key = f"{content} {array.dtype} {array.shape}"
    return t.builder.made_once(key, lambda: t.builder.constant(array, hint))


def blocks_of(t: OnnxTranslation, position: int, *, transposed: bool = False) -> Blocks | None:
    """Return a constant matrix as rows of blocks, if DequantizeLinear makes it from few bits.

    Rows with a scale each, or one for all, are blocks that share it.

    Args:
        t: The operator that reads it.
        position: Its position among the inputs.
        transposed: Whether rows are its second axis.
    """
    constants = constants_of(t.builder.model)
    name = t.source(position)
    computation = constants.computation(name)
    if computation is not None and computation[0].op_type == "Transpose":
        if _attributes(computation[0]).get("perm", [1, 0]) != [1, 0]:
            return None
        name, transposed = computation[1][0], not transposed
        computation = constants.computation(name)
    if computation is None or computation[0].op_type != "DequantizeLinear":
        return None
    attributes, read = _attributes(computation[0]), computation[1]
    length = attributes.get("block_size", 0)
    data, scales = constants.value(read[0]), constants.value(read[1])
    zeros = constants.value(read[2]) if len(read) > 2 and read[2] else None
    if data is None or scales is None or data.ndim != 2:
        return None
    if str(data.dtype) not in ("int4", "uint4", "int8", "uint8"):
        return None
    along = attributes.get("axis", 1) % 2
    inputs = 0 if transposed else 1
    scales = scales.astype(np.float32)
    if length == 0 and (scales.size == 1 or (scales.ndim == 1 and along != inputs)):
        length = _fewest_bytes(data.shape[inputs])
        scales = _of_blocks(scales, data.shape, inputs, length)
        zeros = None if zeros is None else _of_blocks(zeros, data.shape, inputs, length)
    elif length not in LENGTHS or scales.ndim != 2 or along != inputs:
        return None
    if transposed:
        data, scales = data.T, scales.T
        zeros = None if zeros is None else zeros.T
    return _blocks(data, scales, zeros, length, None)


def _fewest_bytes(inputs: int) -> int:
    """Return the length of blocks by which a row of bytes and its scales take the fewest bytes."""
    return min(LENGTHS, key=lambda length: -(-inputs // length) * (length + FLOAT_BYTES))


def _of_blocks(values: Array, shape: Shape, inputs: int, length: int) -> Array:
    """Return the values of rows, or the one of all, for each block of a matrix.

    Args:
        values: One value, or one for each row.
        shape: Of the matrix.
        inputs: The axis along which a row lies, 0 or 1.
        length: Weights of a block.
    """
    blocks = -(-shape[inputs] // length)
    column = np.broadcast_to(values.reshape(-1, 1), (shape[1 - inputs], blocks))
    return column if inputs else column.T


def _attributes(node: onnx.NodeProto) -> Mapping[str, Any]:
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}


def _blocks(
    data: Array, scales: Array, zeros: Array | None, length: int, bits: int | None
) -> Blocks:
    """Return integers as codes without a sign: rows, with blocks along them.

    Args:
        data: Integers of 4 or 8 bits.
        scales: Of each block.
        zeros: Zero points like the integers; None for 0.
        length: Integers of a block.
        bits: Bits of codes that are bytes, None for those of their type.
    """
    label = str(data.dtype)
    if bits is None:
        bits = 4 if label.endswith("4") else 8
    offset = 0 if label.startswith("u") else 1 << (bits - 1)
    codes = (data.astype(np.int16) + offset).astype(np.uint8)
    if zeros is None:
        moved = np.full(scales.shape, offset, np.uint8)
    else:
        moved = (zeros.astype(np.int16) + offset).astype(np.uint8)
    if math.prod(scales.shape) != codes.shape[0] * -(-codes.shape[1] // length):
        raise unsupported("shape of scales", scales.shape, "one for each block")
    return Blocks(codes, scales, moved, bits, length)
