"""One step of an ONNX model, for its translator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from arenite.planner import Array, DType, Step
from arenite.planner.operators import AttributeValue, AutoPad, Imported, Window, num_positions
from arenite.planner.sizes import largest, smallest
from arenite.runtime.lowering.errors import unsupported
from arenite.runtime.lowering.layout import Order, Shape, StoredValue, channels_last
from arenite.runtime.lowering.translation import StepTranslation, Translators
from arenite.runtime.operators.base import Pair, RuntimeOperator, Sides

T = TypeVar("T", bound=AttributeValue)


@dataclass(frozen=True, slots=True)
class OnnxTranslation(StepTranslation):
    """A step of an ONNX model to translate, and its context.

    Attributes:
        opset: Version of ONNX's own operator set.
    """

    opset: int

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        return attributes_of(self.step)

    def value(self, position: int = 0) -> StoredValue:
        return self.builder.value(self.step.inputs[position])

    def optional_array(self, position: int) -> Array | None:
        """Return the elements of an input that must be constant if it is given."""
        return self.array(position) if self.has(position) else None

    def attribute(self, name: str, default: T) -> T:
        value = self.attributes.get(name, default)
        if isinstance(default, float) and isinstance(value, int):
            value = float(value)
        if not isinstance(value, type(default)):
            raise unsupported(name, repr(value))
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a list of integers, or sizes; empty if it is not given."""
        value = self.attributes.get(name, ())
        if not isinstance(value, tuple):
            raise unsupported(name, repr(value))
        return tuple(each if isinstance(each, int) else int(each) for each in value)

    def axis(self, default: int, rank: int) -> int:
        """Return the attribute `axis`, counted from the front."""
        axis = self.attribute("axis", default)
        return axis + rank if axis < 0 else axis

    def image(self, position: int = 0) -> StoredValue:
        """Return an input of rank 4, or of rank 3 with a height of 1, channels last."""
        value = self.value(position)
        if len(value.shape) == 3:
            batch, channels, width = value.shape
            value = self.builder.reshaped(value, (batch, channels, 1, width), self.target)
        if len(value.shape) != 4:
            raise unsupported("input rank", len(value.shape), 3, 4)
        return self.builder.in_order(value, channels_last(4), self.target)

    def emit(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[StoredValue | None],
        *,
        shape: Shape | None = None,
        order: Order | None = None,
        dtype: DType | None = None,
        name: str = "",
    ) -> StoredValue:
        """Add the step that makes the first output or, given a name, an intermediate result."""
        shape = self.shape if shape is None else shape
        return self.builder.emit_one(
            operator, inputs, name or self.target, shape, order,
            dtype=dtype or self.dtype, step=name or self.step.name,
        )  # fmt: skip

    def finish(self, value: StoredValue) -> None:
        """Bind the first output to this value, under its own shape."""
        if not self.builder.agree(value.shape, self.shape):
            value = self.builder.reshaped(value, self.shape, self.target)
        self.builder.bind(self.target, replace(value, shape=self.shape))


def attributes_of(step: Step) -> Mapping[str, AttributeValue]:
    operator = step.operator
    return operator.attributes if isinstance(operator, Imported) else {}


TRANSLATORS = Translators[OnnxTranslation]()
translates = TRANSLATORS.translates


@dataclass(frozen=True, slots=True)
class Opening:
    """Strides, dilations, padding and positions of a window over rows and columns.

    Attributes:
        strides: Distances from one window to the next.
        dilations: Distances between elements of a window.
        padding: Top, right, bottom, left.
        output: Numbers of rows and columns of windows.
    """

    strides: Pair
    dilations: Pair
    padding: Sides
    output: Pair


def window(
    t: OnnxTranslation,
    shape: Shape,
    kernel: Pair,
    extra: Sides = (0, 0, 0, 0),
    *,
    ceil: bool = False,
) -> Opening:
    """Return how the window of an operator slides.

    Args:
        t: The operator.
        shape: N, C, H, W of the image.
        kernel: Rows and columns of the window.
        extra: Padding in addition to the operator's own.
        ceil: Whether a window that is partly beyond the padding counts.
    """
    strides, dilations = pair(t.integers("strides")), pair(t.integers("dilations"))
    mode = auto_pad(t)
    pads = t.integers("pads") or (0, 0, 0, 0)
    if len(pads) == 2:
        pads = (0, pads[0], 0, pads[1])
    if len(pads) != 4 or min(pads) < 0:
        raise unsupported("pads", list(pads), "2 or 4 numbers of at least 0")
    begins, ends, outputs = [], [], []
    for axis in range(2):
        size = shape[2 + axis]
        taps = kernel[axis], strides[axis], dilations[axis]
        if mode.is_same:
            count = num_positions(size, *taps, mode)
            padded = Window.padded(size, count, *taps, mode)
            begin, end = padded.before, largest(0, padded.after)
        else:
            keeps = mode is AutoPad.NOTSET
            begin = (pads[axis] if keeps else 0) + (extra[0], extra[3])[axis]
            end = (pads[axis + 2] if keeps else 0) + (extra[2], extra[1])[axis]
            count = num_positions(size + begin + end, *taps)
            if ceil:
                # One more position, if it begins inside the image or the padding in front.
                room = size + begin + end + strides[axis] - 1
                inside = (size + begin - 1) // strides[axis] + 1
                count = largest(count, smallest(num_positions(room, *taps), inside))
                end = largest(end, Window(size, count, *taps, begin).after)
        begins.append(begin)
        ends.append(end)
        outputs.append(count)
    return Opening(
        strides, dilations, (begins[0], ends[1], ends[0], begins[1]), (outputs[0], outputs[1])
    )


def auto_pad(t: OnnxTranslation) -> AutoPad:
    """Return how an operator states its padding."""
    mode = t.attribute("auto_pad", "NOTSET")
    if mode not in set(AutoPad):
        raise unsupported("auto_pad", mode, *AutoPad)
    return AutoPad(mode)


def pair(values: tuple[int, ...]) -> Pair:
    """Return rows and columns; one number is of columns, none is 1 and 1."""
    if len(values) == 1:
        return 1, values[0]
    return (values[0], values[1]) if values else (1, 1)
