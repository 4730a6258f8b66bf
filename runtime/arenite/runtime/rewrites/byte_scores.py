"""Recognise attention of bytes: a softmax between two products, all rounded to bytes.

Such products are steps of bytes, or of the floats that bytes stand for, rounded to bytes again.
"""

from dataclasses import dataclass

import numpy as np

from arenite.planner import Array, DType, Quantisation, Step
from arenite.planner.sizes import same
from arenite.runtime.operators.elementwise import Binary, BinaryFunction, Convert
from arenite.runtime.operators.linear import MatMul
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.normalisation import Softmax
from arenite.runtime.rewrites.scores import Makers, is_open


@dataclass(frozen=True, slots=True)
class ByteProduct:
    """A product of two matrices of bytes whose results are bytes.

    Attributes:
        operator: How it multiplies.
        operands: Both tensors as the product reads them; of bytes, or of floats made of these.
    """

    operator: MatMul
    operands: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ByteMixing:
    """A product of weights and values of bytes.

    Attributes:
        step: The step that makes its bytes.
        product: That product.
        scores: The product of queries and keys.
        roundings: Scale and zero point of the scores, then of the weights.
        beta: Factor of what the softmax reads.
        table: What that is for each score, from -128 on, and its quantisation; None: the score.
    """

    step: Step
    product: ByteProduct
    scores: ByteProduct
    roundings: tuple[float, float, float, float]
    beta: float
    table: tuple[Array, Quantisation] | None


class ByteScoreFinder:
    """Finds attention of bytes in a program."""

    def __init__(self, makers: Makers) -> None:
        self._makers = makers
        self._tensors = makers.program.tensors

    def mixing(self, step: Step) -> ByteMixing | None:
        """Return a step as the end of attention, None if it is something else."""
        if not isinstance(step.operator, MatMul | Convert):
            return None
        product = self._product(step.outputs[0])
        if product is None or product.operator.transpose_a:
            return None
        made = self._private_bytes(product.operands[0])
        softmax = None if made is None else self._makers.maker(made)
        if softmax is None or not isinstance(softmax.operator, Softmax):
            return None
        read, weights = (
            self._quantisation(name) for name in (softmax.inputs[0], softmax.outputs[0])
        )
        shapes = [
            self._tensors[name].shape[-1] for name in (softmax.outputs[0], product.operands[0])
        ]
        is_along_keys = same(*shapes)
        if softmax.operator.logarithm or read is None or weights is None or not is_along_keys:
            return None
        name, table = softmax.inputs[0], None
        scores = self._product(name)
        if scores is None:
            found = self._table(name, read)
            if found is None:
                return None
            name, array = found
            scores, table = self._product(name), (array, read)
        of_scores = self._quantisation(name)
        if scores is None or scores.operator.transpose_a or of_scores is None:
            return None
        if not self._makers.is_private(softmax.inputs[0]):
            return None
        roundings = (
            of_scores.scales[0], of_scores.zero_point, weights.scales[0], weights.zero_point,
        )  # fmt: skip
        return ByteMixing(step, product, scores, roundings, softmax.operator.beta, table)

    def _product(self, name: str) -> ByteProduct | None:
        """Return the product that makes a tensor of bytes."""
        step = self._makers.maker(name)
        if step is None or self._quantisation(step.outputs[0]) is None:
            return None
        if isinstance(step.operator, Convert):
            made = step.inputs[0]
            step = self._makers.maker(made)
            if step is None or not self._makers.is_private(made):
                return None
        if not isinstance(step.operator, MatMul):
            return None
        if not all(map(self._is_of_bytes, step.inputs)):
            return None
        return ByteProduct(step.operator, (step.inputs[0], step.inputs[1]))

    def _is_of_bytes(self, name: str) -> bool:
        """Tell whether a tensor has bytes, or floats that are copied from those made of bytes."""
        while self._quantisation(name) is None:
            step = self._makers.maker(name)
            if step is None or not isinstance(step.operator, Copy | Convert):
                return False
            name = step.inputs[0]
        return True

    def _private_bytes(self, name: str) -> str | None:
        """Return the bytes that an operand is, or is made of, if nothing else reads either."""
        if not self._makers.is_private(name):
            return None
        if self._quantisation(name) is not None:
            return name
        step = self._makers.maker(name)
        if step is None or not isinstance(step.operator, Convert):
            return None
        source = step.inputs[0]
        is_known = self._quantisation(source) is not None and self._makers.is_private(source)
        return source if is_known else None

    def _quantisation(self, name: str) -> Quantisation | None:
        """Return how a tensor of signed bytes stands for numbers, None of others."""
        tensor, root = (self._tensors[each] for each in (name, self._makers.program.root(name)[0]))
        stated = tensor.quantisation
        if tensor.dtype is not DType.INT8 or stated is None or len(stated.scales) > 1:
            return None
        return stated if root.quantisation == stated else None

    def _table(self, name: str, read: Quantisation) -> tuple[str, Array] | None:
        """Return the bytes of which a tensor is a multiple, and the tensor's for each of them."""
        rounding = self._makers.maker(name)
        if rounding is None or not isinstance(rounding.operator, Convert):
            return None
        scaling = self._makers.maker(rounding.inputs[0])
        if scaling is None or not isinstance(scaling.operator, Binary):
            return None
        source = self._private_bytes(scaling.inputs[0])
        factor = self._makers.scalar(scaling.inputs[1])
        given = None if source is None else self._quantisation(source)
        if source is None or given is None or factor is None or not is_open(scaling.operator):
            return None
        counts = (self._tensors[each].num_elements for each in (source, name))
        if not same(*counts) or not self._makers.is_private(rounding.inputs[0]):
            return None
        numbers = np.float32(given.scales[0]) * (np.arange(-128, 128) - given.zero_point).astype(
            np.float32
        )
        match scaling.operator.function:
            case BinaryFunction.MULTIPLY:
                numbers = numbers * np.float32(factor)
            case BinaryFunction.DIVIDE if factor:
                numbers = numbers / np.float32(factor)
            case _:
                return None
        steps = np.rint(numbers / np.float32(read.scales[0])) + read.zero_point
        return source, np.clip(steps, -128, 127).astype(np.int8)
