"""Small operands for operators of TFLite, and what is fed for them."""

from collections.abc import Sequence

import numpy as np

from sweep.case import Array
from sweep.tflite_file import Operator, Tensor, constant

_GENERATOR = np.random.default_rng(5)


def x(*shape: int, dtype: str = "float32") -> Tensor:
    """Return a tensor that is computed or fed."""
    return Tensor(shape, dtype)


def numbers(*shape: int) -> Tensor:
    """Return a constant of random numbers."""
    return constant(_GENERATOR.standard_normal(shape).astype(np.float32))


def integers(*values: object, dtype: str = "int32") -> Tensor:
    """Return a constant list of integers."""
    return constant(np.array(values, dtype))


def scalar(value: float, dtype: str = "int32") -> Tensor:
    """Return a constant without dimensions."""
    return constant(np.array(value, dtype))


IMAGE = x(1, 6, 8, 4)
ROWS = x(4, 9)
STEPS = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
POOL = ("Pool2DOptions", {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2})
HALVED = x(1, 3, 4, 4)
TRUTH = {"dtype": "bool"}


def pads(*pairs: tuple[int, int]) -> Tensor:
    """Return the padding before and after each axis."""
    return constant(np.array(pairs, np.int32))


def feeds(operator: Operator, seed: int = 0) -> list[Array]:
    """Return random arrays for the inputs of a model of this operator."""
    generator = np.random.default_rng(seed)
    return [_drawn(generator, each) for each in operator.fed]


def _drawn(generator: np.random.Generator, tensor: Tensor) -> Array:
    shape: Sequence[int] = tensor.shape
    if tensor.dtype.startswith("complex"):
        both = generator.standard_normal((2, *shape))
        return np.asarray(both[0] + 1j * both[1], tensor.dtype)
    if tensor.dtype.startswith("float"):
        return np.asarray(np.abs(generator.standard_normal(shape)) + 0.1, tensor.dtype)
    if tensor.scales:
        limits = np.iinfo(tensor.dtype)
        return np.asarray(generator.integers(limits.min, limits.max + 1, shape), tensor.dtype)
    low, high = (0, 2) if tensor.dtype == "bool" else (1, 5)
    return np.asarray(generator.integers(low, high, shape), tensor.dtype)
