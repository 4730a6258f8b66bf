"""Shared parts of both formats: registration of translators, context of a step, folding."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, TypeVar

import numpy as np

from arenite.planner import Array, DType, Program, Step
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.sizes import same
from arenite.runtime.lowering.builder import ProgramBuilder
from arenite.runtime.lowering.drafts import DraftStep
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import Order, Shape, StoredValue
from arenite.runtime.lowering.moves import picked
from arenite.runtime.operators.base import Clamped
from arenite.runtime.operators.convolution import (
    Conv2D,
    Convolution,
    DepthwiseConv2D,
    TransposedConv2D,
)
from arenite.runtime.operators.elementwise import MultiplyAdd
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move
from arenite.runtime.operators.normalisation import LayerNorm

KNOWN_TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64,
    DType.BOOL, DType.FLOAT64,
)  # fmt: skip


def check_input_types(model: Program) -> None:
    """Check that the core knows the type of every input of a model.

    Raises:
        UnsupportedModelError: It cannot.
    """
    for name in model.input_tensors:
        dtype = model.tensors[name].dtype
        if dtype not in KNOWN_TYPES:
            raise UnsupportedModelError(name, f"the runtime has no {dtype.label}")


T = TypeVar("T")
Translate = Callable[[T], None]


class InputLayout(Enum):
    """The order in which an operator needs its first input stored."""

    AS_WRITTEN = "as written"
    CHANNELS_LAST = "channels last"
    ANY = "any"
    """In any order; the result has the same."""


class Translators(Generic[T]):
    """The translators of one format, by the names of its operators."""

    def __init__(self) -> None:
        self._translators: dict[str, Translate[T]] = {}
        self._layouts: dict[str, InputLayout] = {}
        self._of_int16: set[str] = set()

    def translates(
        self, *names: str, layout: InputLayout = InputLayout.AS_WRITTEN, int16: bool = False
    ) -> Callable[[Translate[T]], Translate[T]]:
        """Return a decorator that registers a function as the translator of operators.

        Args:
            names: Names of the operators; none may have a translator already.
            layout: The order in which they need their first input.
            int16: Whether they take integers of 16 bits: they move or convert them, keep a state
                of them, or go by the numbers that these stand for.
        """

        def listed(translate: Translate[T]) -> Translate[T]:
            for name in names:
                assert name not in self._translators, f"{name} has a translator already"
                self._translators[name] = translate
                self._layouts[name] = layout
                if int16:
                    self._of_int16.add(name)
            return translate

        return listed

    def find(self, name: str) -> Translate[T] | None:
        return self._translators.get(name)

    def layout(self, name: str) -> InputLayout:
        """Return the order in which an operator needs its first input."""
        return self._layouts.get(name, InputLayout.AS_WRITTEN)

    def takes_int16(self, name: str) -> bool:
        """Tell whether an operator with a translator takes integers of 16 bits."""
        return name in self._of_int16

    def names(self) -> tuple[str, ...]:
        """Return the names of all operators with a translator, sorted."""
        return tuple(sorted(self._translators))


@dataclass(frozen=True, slots=True)
class StepTranslation:
    """A step to translate, and its context.

    Attributes:
        builder: The program so far.
        step: The step to translate.
        producers: For each tensor of the model, the step that makes it.
    """

    builder: ProgramBuilder
    step: Step
    producers: Mapping[str, Step]

    @property
    def kind(self) -> str:
        """The operator's name; of ONNX its domain in front, unless that is ONNX's own."""
        return self.step.operator.label

    def has(self, position: int) -> bool:
        """Tell whether an optional input is given."""
        return position < len(self.step.inputs) and bool(self.step.inputs[position])

    def source(self, position: int = 0) -> str:
        return self.step.inputs[position]

    def array(self, position: int) -> Array:
        """Return the elements of an input that must be constant."""
        array = self.builder.array(self.source(position))
        if array is None:
            raise NotLoweredError(f"input {position} is not constant")
        return array

    def numbers(self, position: int) -> tuple[int, ...]:
        """Return the integers of an input that are known before the run, sizes among them."""
        found = self.builder.integers(self.source(position))
        if found is None:
            raise NotLoweredError(f"input {position} is not constant")
        return found

    def emit_parts(
        self, value: StoredValue, axis: int, sizes: Sequence[int]
    ) -> list[tuple[str, StoredValue]]:
        """Add one step that cuts a value along an axis.

        Args:
            value: The value; the parts are stored in its order.
            axis: The axis, of the model.
            sizes: Length of the part for each output of the step.

        Returns:
            Each output that has a name, and its part.
        """
        first = [0] * len(value.shape)
        moves: list[Move] = []
        outputs: list[tuple[str, Shape, Order]] = []
        for name, size in zip(self.step.outputs, sizes, strict=True):
            shape = tuple(size if a == axis else n for a, n in enumerate(value.shape))
            if name:
                moves.append(picked(value, shape, first, (1,) * len(shape), output=len(outputs)))
                outputs.append((name, shape, value.order))
            first[axis] += size
        made = self.builder.emit(Copy(moves=tuple(moves)), [value], outputs, step=self.step.name)
        return [(name, part) for (name, _, _), part in zip(outputs, made, strict=True)]

    @property
    def target(self) -> str:
        """Name of the first output."""
        return self.step.outputs[0]

    @property
    def shape(self) -> Shape:
        """Shape of the first output."""
        return self.builder.shape(self.target)

    @property
    def dtype(self) -> DType:
        """Type of the first output."""
        return self.builder.model.tensors[self.target].dtype


_CHANNEL_AXES = {
    Conv2D: 0,
    DepthwiseConv2D: 3,
    TransposedConv2D: 0,
    FullyConnected: 0,
    MultiplyAdd: 0,
    LayerNorm: 0,
}
"""The axis of the output channels in the weights of each operator that has them."""


def fold_clamp(builder: ProgramBuilder, source: str, target: str, low: float, high: float) -> bool:
    """Fold a clamp into the step that makes `source`, so that it makes `target`, if it can."""
    draft = builder.producer(source)
    if draft is None or not isinstance(draft.operator, Clamped):
        return False
    if draft.outputs[0].dtype is not DType.FLOAT32:
        return False
    clamp = draft.operator
    # clamp(clamp(x, a, b), c, d) is one clamp unless the intervals are disjoint.
    if low > clamp.max or high < clamp.min:
        return False
    draft.operator = replace(clamp, min=max(low, clamp.min), max=min(high, clamp.max))
    builder.bind(target, builder.value(source))
    return True


def fold_channels(
    builder: ProgramBuilder, source: str, target: str, scale: Array | None, shift: Array | None
) -> bool:
    """Fold a scale and shift of the last stored axis into the step that makes `source`.

    Args:
        builder: The program.
        source: The tensor to scale and shift.
        target: The tensor that results.
        scale: One factor per channel, or one for all.
        shift: One term per channel, or one for all, added after scaling.
    """
    draft = builder.producer(source)
    if draft is None or type(draft.operator) not in _CHANNEL_AXES:
        return False
    if not _is_open(draft):
        return False
    weights, bias = draft.inputs[1], draft.inputs[2]
    if weights is None or weights.array is None or (bias is not None and bias.array is None):
        return False
    value = builder.value(source)
    if value.order[-1:] != draft.outputs[0].order[-1:] and value.stored[-1] == 1:
        return False
    axis = _CHANNEL_AXES[type(draft.operator)]
    num_channels = weights.array.shape[axis]
    if not same(value.stored[-1], num_channels):
        return False
    if any(v is not None and v.size not in (1, num_channels) for v in (scale, shift)):
        return False
    new_bias = np.zeros(num_channels, np.float32) if bias is None else bias.array
    assert new_bias is not None
    if scale is not None:
        shape = [1] * weights.array.ndim
        shape[axis] = -1
        factors = np.broadcast_to(scale.reshape(-1), (num_channels,)).astype(np.float32)
        position = 1
        if weights.dtype is not DType.FLOAT32:  # integers keep their scales apart
            position, shape = Convolution.SCALES, [-1]
        scaled_input = draft.inputs[position]
        assert scaled_input is not None
        assert scaled_input.array is not None
        scaled = (scaled_input.array * factors.reshape(shape)).astype(np.float32)
        draft.inputs[position] = builder.constant(scaled, scaled_input.tensor)
        new_bias = new_bias * factors
    if shift is not None:
        new_bias = new_bias + shift.reshape(-1)
    draft.inputs[2] = builder.constant(new_bias.astype(np.float32), weights.tensor)
    builder.bind(target, value)
    return True


def _is_open(draft: DraftStep) -> bool:
    operator = draft.operator
    if isinstance(operator, LayerNorm):
        return operator.num_axes == 1
    return (
        draft.outputs[0].dtype is DType.FLOAT32
        and isinstance(operator, Clamped)
        and operator.min == -np.inf
        and operator.max == np.inf
    )
