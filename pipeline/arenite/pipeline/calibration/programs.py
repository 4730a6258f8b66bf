"""Small programs that spend their time on one thing each."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from arenite.pipeline.making.costs import FLOAT
from arenite.planner.dtypes import DType
from arenite.planner.operators.operator import Operator
from arenite.planner.program import Array, OperatorSet, Port, Program, Step
from arenite.planner.tensors import Quantisation, Tensor, TensorKind
from arenite.runtime.operators.base import NO_PADDING
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D
from arenite.runtime.operators.elementwise import Unary, UnaryFunction
from arenite.runtime.rewrites.packing import pack_filters

_SCALE = Quantisation((0.05,))
_SEED = 0
_AROUND = (1, 1, 1, 1)


@dataclass(slots=True)
class _Chain:
    """Steps that each read what the last one made."""

    dtype: DType
    shape: tuple[int, ...]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tensor("t0", TensorKind.INPUT)

    def add(self, operator: Operator, *constants: Array) -> None:
        """Add a step that makes a tensor of the same shape."""
        number = len(self.steps)
        names = []
        for index, array in enumerate(constants):
            names.append(f"c{number}.{index}")
            dtype = next(each for each in DType if each.label == array.dtype.name)
            self.constants[names[-1]] = array
            self.tensors[names[-1]] = Tensor(
                names[-1], dtype, array.shape, TensorKind.CONSTANT,
                quantisation=_SCALE if dtype is DType.INT8 else None,
            )  # fmt: skip
        made = self._tensor(f"t{number + 1}", TensorKind.ACTIVATION)
        self.steps.append(Step(f"s{number}", operator, (f"t{number}", *names), (made,)))

    def program(self) -> Program:
        """Return the program, its filters packed."""
        last = self.steps[-1].outputs[0]
        self._tensor(last, TensorKind.OUTPUT)
        return pack_filters(
            Program(
                "calibration", self.tensors, tuple(self.steps), (Port("x", "t0"),),
                (Port("y", last),), operator_set=OperatorSet.ARENITE, constants=self.constants,
            )
        )  # fmt: skip

    def _tensor(self, name: str, kind: TensorKind) -> str:
        quantisation = _SCALE if self.dtype is DType.INT8 else None
        self.tensors[name] = Tensor(name, self.dtype, self.shape, kind, quantisation=quantisation)
        return name


def convolutions(label: str, kernels: Sequence[int], size: int, channels: int) -> Program:
    """Return convolutions one after the other.

    Args:
        label: Type of the elements.
        kernels: Rows and columns of the filter of each.
        size: Rows and columns of the image.
        channels: Of the image, and of all results.
    """
    chain, draw = _chain(label, size, channels)
    for kernel in kernels:
        padding = _AROUND if kernel > 1 else NO_PADDING
        chain.add(
            Conv2D(padding=padding, kernel=(kernel, kernel)),
            _filter(draw, label, (channels, kernel, kernel, channels)),
        )
    return chain.program()


def depthwise_convolutions(label: str, count: int, size: int, channels: int) -> Program:
    """Return depthwise convolutions of three rows and columns, one after the other."""
    chain, draw = _chain(label, size, channels)
    for _ in range(count):
        chain.add(DepthwiseConv2D(padding=_AROUND), _filter(draw, label, (1, 3, 3, channels)))
    return chain.program()


def separable_convolutions(label: str, count: int, size: int, channels: int) -> Program:
    """Return depthwise convolutions that each have one of a single row and column after them."""
    chain, draw = _chain(label, size, channels)
    for _ in range(count):
        chain.add(DepthwiseConv2D(padding=_AROUND), _filter(draw, label, (1, 3, 3, channels)))
        chain.add(Conv2D(kernel=(1, 1)), _filter(draw, label, (channels, 1, 1, channels)))
    return chain.program()


def passes(count: int, size: int, channels: int) -> Program:
    """Return steps that do no more than read floats and write others."""
    chain, _ = _chain(FLOAT, size, channels)
    for _ in range(count):
        chain.add(Unary(function=UnaryFunction.CLAMP, alpha=-3.0, beta=3.0))
    return chain.program()


def _chain(label: str, size: int, channels: int) -> tuple[_Chain, np.random.Generator]:
    dtype = next(each for each in DType if each.label == label)
    return _Chain(dtype, (1, size, size, channels)), np.random.default_rng(_SEED)


def _filter(draw: np.random.Generator, label: str, shape: tuple[int, ...]) -> Array:
    if label == FLOAT:
        return draw.uniform(-0.1, 0.1, shape).astype(np.float32)
    return draw.integers(-10, 11, shape).astype(np.int8)
