"""Find the gradients of convolution weights, which training steps write as simpler operators.

ONNX has no operator for them. `arenite train` writes a convolution of the image by the gradient of
the result, or a product of matrices for each tap of the filter; either for the whole batch, or
image by image and added up. Each becomes one step that reads both where they lie: nothing is
padded, sliced or put together. For this, parts of images are followed through slices and pads.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from arenite.planner import Array, DType, Program, Step, TensorKind
from arenite.planner.operators import AttributeValue, Operator
from arenite.runtime.lowering.layout import as_written, channels_last
from arenite.runtime.lowering.onnx.translation import OnnxTranslation, attributes_of
from arenite.runtime.operators.base import Pair
from arenite.runtime.operators.convolution import WeightGradient


@dataclass(frozen=True, slots=True)
class Axis:
    """Places along an axis of an image, evenly spaced: those outside of [low, high) are zeros.

    Attributes:
        start: The first place.
        step: From one to the next.
        count: Number of places.
        low: First place that may be seen.
        high: The place behind the last that may be seen.
    """

    start: int
    step: int
    count: int
    low: int
    high: int

    def sees(self, length: int) -> bool:
        """Tell whether it sees all of its places that lie in an image of this length."""
        places = range(self.start, self.start + self.step * self.count, self.step)
        return all((0 <= at < length) == (self.low <= at < self.high) for at in places)


_Axes: TypeAlias = tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class ImagePart:
    """Elements of a tensor N, C, H, W.

    Attributes:
        source: Name of the tensor.
        axes: Its places by axis.
    """

    source: str
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of places by axis."""
        return tuple(axis.count for axis in self.axes)


class Moves:
    """The steps of a model that move elements, followed from results to operands.

    Args:
        model: A model whose constants are known.
    """

    def __init__(self, model: Program) -> None:
        self._model = model
        self._makers: Mapping[str, Step] = {
            name: step for step in model.steps for name in step.outputs if name
        }

    def shape(self, name: str) -> tuple[int, ...]:
        return self._model.tensors[name].shape

    def maker(self, name: str, label: str) -> Step | None:
        """Return the step that makes a tensor, if it is such an operator."""
        step = self._makers.get(name)
        return step if step is not None and step.operator.label == label else None

    def constant(self, name: str) -> Array | None:
        if not name or self._model.tensors[name].kind is not TensorKind.CONSTANT:
            return None
        return self._model.constants.get(name)

    def behind_reshapes(self, name: str, shape: tuple[int, ...] | None = None) -> str:
        """Return the furthest tensor, of a shape or of any, of which this is a reshape.

        The tensor itself if there is no other.
        """
        found = name
        while (step := self.maker(name, "Reshape")) is not None:
            name = step.inputs[0]
            if shape in (None, self.shape(name)):
                found = name
        return found

    def behind_transpose(self, name: str, perm: tuple[int, ...]) -> str | None:
        """Return the input of a transpose of this order, behind reshapes; None without one."""
        step = self.maker(self.behind_reshapes(name), "Transpose")
        if step is None or attributes_of(step).get("perm") != perm:
            return None
        return step.inputs[0]

    def image_part(self, name: str, axes: tuple[int, ...]) -> ImagePart:
        """Return which part of which image a tensor N, C, H, W is, along some axes."""
        chain: list[Step] = []
        source = name
        while step := self.maker(source, "Slice") or self.maker(source, "Pad"):
            chain.append(step)
            source = step.inputs[0]
        # From the furthest tensor of which it is a part that can be stated.
        for first in range(len(chain), -1, -1):
            source = chain[first - 1].inputs[0] if first else name
            whole = _whole(self.shape(source))
            places: _Axes | None = whole
            for step in reversed(chain[:first]):
                places = None if places is None else self._moved(step, places)
            if places is not None and all(
                axis in axes or one == other
                for axis, (one, other) in enumerate(zip(whole, places, strict=True))
            ):
                return ImagePart(source, places)
        raise AssertionError("a tensor is a part of itself")

    def _moved(self, step: Step, axes: _Axes) -> _Axes | None:
        """Return the places behind a slice or pad of some; None if it is of another kind."""
        move = _sliced if step.operator.label == "Slice" else _padded
        numbers = [self.constant(name) for name in step.inputs[1:]]
        if any(each is None for each in numbers):
            return None
        found = move(axes, [np.asarray(each) for each in numbers], attributes_of(step))
        fits = found is not None and tuple(a.count for a in found) == self.shape(step.outputs[0])
        return found if fits else None


def _whole(shape: tuple[int, ...]) -> _Axes:
    return tuple(Axis(0, 1, length, 0, length) for length in shape)


def _sliced(axes: _Axes, numbers: list[Array], _: Mapping[str, object]) -> _Axes | None:
    if len(numbers) < 3:
        return None
    starts, ends, places = (each.reshape(-1).tolist() for each in numbers[:3])
    steps = numbers[3].reshape(-1).tolist() if len(numbers) > 3 else [1] * len(starts)
    if not len(starts) == len(ends) == len(places) == len(steps):
        return None
    found = list(axes)
    for start, end, place, step in zip(starts, ends, places, steps, strict=True):
        if start < 0 or end < 0 or step < 1 or not 0 <= place < len(axes):
            return None
        axis = axes[place]
        count = len(range(start, min(end, axis.count), step))
        found[place] = replace(
            axis, start=axis.start + start * axis.step, step=axis.step * step, count=count
        )
    return tuple(found)


def _padded(axes: _Axes, numbers: list[Array], attributes: Mapping[str, object]) -> _Axes | None:
    is_zero = len(numbers) < 2 or not np.any(numbers[1])
    if attributes.get("mode", "constant") != "constant" or not is_zero or len(numbers) > 2:
        return None
    widths = numbers[0].reshape(-1).tolist()
    before, after = widths[: len(axes)], widths[len(axes) :]
    if len(widths) != 2 * len(axes) or min(widths) < 0 or any(axis.step != 1 for axis in axes):
        return None
    return tuple(
        replace(
            axis,
            start=axis.start - first,
            count=first + axis.count + last,
            low=max(axis.low, axis.start),
            high=min(axis.high, axis.start + axis.count),
        )
        if first or last
        else axis
        for axis, first, last in zip(axes, before, after, strict=True)
    )


@dataclass(frozen=True, slots=True)
class FoundGradient(Operator):
    """A gradient of weights that was found.

    Attributes:
        operator: The operator of the core.
    """

    operator: WeightGradient


def translate_found(t: OnnxTranslation, found: FoundGradient) -> None:
    image, gradient = (
        t.builder.in_order(t.value(position), channels_last(4), t.target) for position in (0, 1)
    )
    t.finish(t.emit(found.operator, [image, gradient], order=as_written(4)))


def with_weight_gradients(model: Program) -> Program:
    """Return the model with the gradients of its convolutions' weights as one step each."""
    moves = Moves(model)
    steps, found = [], False
    for step in model.steps:
        is_float = all(model.tensors[name].dtype is DType.FLOAT32 for name in step.writes)
        gradient = _GradientSearch(moves).gradient(step) if is_float else None
        found |= gradient is not None
        steps.append(gradient or step)
    if not found:
        return model
    return replace(model, steps=tuple(_needed(model, steps)))


def _needed(model: Program, steps: list[Step]) -> list[Step]:
    """Return the steps that lead to outputs and states."""
    needed = set(model.output_tensors)
    kept = []
    for step in reversed(steps):
        is_kept = any(
            name in needed or model.tensors[model.root(name)[0]].kind is TensorKind.STATE
            for name in step.writes
        )
        if is_kept:
            kept.append(step)
            needed.update(step.reads)
    return kept[::-1]


@dataclass(frozen=True, slots=True)
class _Term:
    """The gradient that some images give."""

    image: ImagePart
    gradient: ImagePart
    operator: WeightGradient


@dataclass(frozen=True, slots=True)
class _GradientSearch:
    """Looks for the gradient that a step completes.

    Attributes:
        moves: The steps before it.
    """

    moves: Moves

    def gradient(self, step: Step) -> Step | None:
        """Return the step that makes a gradient at once, None if this one completes none."""
        label = step.operator.label
        perm = attributes_of(step).get("perm")
        if not (label == "Reshape" or (label == "Transpose" and perm == (1, 0, 2, 3))):
            return None
        shape = self.moves.shape(step.outputs[0])
        if len(shape) != 4 or 0 in shape:
            return None
        # A reshape is a transpose as well where one of the axes that change places is 1 long.
        is_turned = label == "Transpose" or 1 in shape[:2]
        terms = []
        for name in self._terms(step.inputs[0]):
            term = self._by_convolution(name, shape) if is_turned else None
            if term is None and label == "Reshape":
                term = self._by_taps(name, shape)
            if term is None:
                return None
            terms.append(term)
        first = terms[0]
        sources = first.image.source, first.gradient.source
        if any((each.image.source, each.gradient.source) != sources for each in terms):
            return None
        if any(each.operator != first.operator for each in terms):
            return None
        for parts in ([each.image for each in terms], [each.gradient for each in terms]):
            if not _are_all_images(parts, self.moves.shape(parts[0].source)[0]):
                return None
        if any(each.image.axes[0] != each.gradient.axes[0] for each in terms):
            return None
        return Step(step.name, FoundGradient(first.operator), sources, step.outputs)

    def _terms(self, name: str) -> Iterator[str]:
        """Yield the terms of a sum, in the order of its operands."""
        name = self.moves.behind_reshapes(name)
        added = self.moves.maker(name, "Add")
        shapes = set() if added is None else {self.moves.shape(each) for each in added.inputs}
        if added is None or len(shapes) != 1:
            yield name
            return
        for each in added.inputs:
            yield from self._terms(each)

    def _by_convolution(self, name: str, shape: tuple[int, ...]) -> _Term | None:
        """Return a convolution of an image by the gradient, whose filters are M, N, H', W'."""
        step = self.moves.maker(name, "Conv")
        if step is None or len(step.inputs) != 2:
            return None
        outputs, inner, *kernel = shape
        attributes = attributes_of(step)
        rows, filters = step.inputs
        if self.moves.shape(name) != (inner, outputs, *kernel):
            return None
        if attributes.get("auto_pad", "NOTSET") != "NOTSET" or len(self.moves.shape(rows)) != 4:
            return None
        groups = _integers(attributes, "group", 1)[0]
        # Strides and dilations change places.
        operator = WeightGradient(
            strides=_pair(_integers(attributes, "dilations", 1, 1)),
            dilations=_pair(_integers(attributes, "strides", 1, 1)),
            before=_pair(_integers(attributes, "pads", 0, 0)),
            groups=groups,
        )
        if min(operator.before) < 0 or groups < 1:
            return None
        batch = self.moves.shape(filters)[1]
        gradient = self._turned(filters, batch, outputs, self.moves.shape(filters)[2:])
        cropped = self.moves.image_part(rows, (2, 3))
        lengths = self.moves.shape(cropped.source)[2:]
        image = self._parted(cropped.source, batch, groups, inner, lengths)
        if gradient is None or image is None:
            return None
        counts = gradient.shape[2:]
        for axis in range(2):
            seen = cropped.axes[2 + axis]
            reach = (counts[axis] - 1) * operator.strides[axis]
            last = reach + (kernel[axis] - 1) * operator.dilations[axis] - operator.before[axis]
            if (seen.start, seen.step) != (0, 1) or last >= seen.count < lengths[axis]:
                return None
        return _Term(self.moves.image_part(image, (0,)), gradient, operator)

    def _turned(
        self, name: str, batch: int, channels: int, lengths: tuple[int, ...]
    ) -> ImagePart | None:
        """Return the part of an image N, C, H, W of which a tensor is C, N, H, W."""
        shape = (batch, channels, *lengths)
        source = self.moves.behind_transpose(name, (1, 0, 2, 3))
        if source is None and 1 in (batch, channels):
            source = self.moves.behind_reshapes(name, shape)
        if source is None or self.moves.shape(source) != shape:
            return None
        return self.moves.image_part(source, (0,))

    def _parted(
        self, name: str, batch: int, groups: int, inner: int, lengths: tuple[int, ...]
    ) -> str | None:
        """Return the image N, C, H, W of which a tensor is C / G, G N, H, W."""
        shape = (batch, groups * inner, *lengths)
        source = self.moves.behind_transpose(name, (2, 1, 0, 3, 4))
        if source is None and sum(length != 1 for length in (batch, groups, inner)) > 1:
            return None
        if source is not None and self.moves.shape(source) != (batch, groups, inner, *lengths):
            return None
        image = self.moves.behind_reshapes(name if source is None else source, shape)
        return image if self.moves.shape(image) == shape else None

    def _by_taps(self, name: str, shape: tuple[int, ...]) -> _Term | None:
        """Return products of the gradient and the image, tap by tap, put side by side."""
        outputs, channels, *kernel = shape
        joined = self.moves.maker(name, "Concat")
        products = [name] if joined is None else list(joined.inputs)
        if len(products) != math.prod(kernel):
            return None
        if joined is not None and (
            attributes_of(joined).get("axis") not in (2, -1)
            or self.moves.shape(name) != (outputs, channels, len(products))
        ):
            return None
        found: list[tuple[ImagePart, ImagePart]] = []
        for product in products:
            pair = self._product(product, outputs, channels)
            if pair is None:
                return None
            found.append(pair)
        image, gradient = found[0]
        if any(g != gradient or part.source != image.source for part, g in found):
            return None
        strides, before, dilations = [], [], []
        for axis, taps in ((2, kernel[0]), (3, kernel[1])):
            second = kernel[1] if axis == 2 else 1
            start = image.axes[axis].start
            strides.append(image.axes[axis].step)
            before.append(-start)
            dilations.append(found[second][0].axes[axis].start - start if taps > 1 else 1)
        if min(before) < 0 or min(dilations) < 1:
            return None
        lengths = self.moves.shape(image.source)
        for tap, (part, _) in enumerate(found):
            for axis, at in ((2, tap // kernel[1]), (3, tap % kernel[1])):
                seen, place = part.axes[axis], axis - 2
                stated = (
                    at * dilations[place] - before[place], strides[place], gradient.shape[axis]
                )  # fmt: skip
                if (seen.start, seen.step, seen.count) != stated or not seen.sees(lengths[axis]):
                    return None
            if part.axes[0] != image.axes[0]:
                return None
        operator = WeightGradient(
            strides=_pair(strides), dilations=_pair(dilations), before=_pair(before)
        )
        return _Term(image, gradient, operator)

    def _product(
        self, name: str, outputs: int, channels: int
    ) -> tuple[ImagePart, ImagePart] | None:
        """Return the image and the gradient of a product of matrices over all pixels."""
        step = self.moves.maker(self.moves.behind_reshapes(name), "Gemm")
        if step is None or len(step.inputs) != 2:
            return None
        attributes = attributes_of(step)
        if (attributes.get("transA", 0), attributes.get("transB", 0)) != (0, 1):
            return None
        if attributes.get("alpha", 1.0) != 1.0:
            return None
        gradient = self._pixels(step.inputs[0], outputs, (0,))
        image = self._pixels(step.inputs[1], channels, (0, 2, 3))
        if gradient is None or image is None or gradient.shape[2:] != image.shape[2:]:
            return None
        return image, gradient

    def _pixels(self, name: str, channels: int, axes: tuple[int, ...]) -> ImagePart | None:
        """Return the part of an image whose channels are the rows of a matrix."""
        if len(self.moves.shape(name)) != 2 or self.moves.shape(name)[0] != channels:
            return None
        source = self.moves.behind_transpose(name, (1, 0, 2, 3))
        if source is None:
            source = self._image_of_one(name, channels)
        if source is None or len(self.moves.shape(source)) != 4:
            return None
        if self.moves.shape(source)[1] != channels:
            return None
        return self.moves.image_part(source, axes)

    def _image_of_one(self, name: str, channels: int) -> str | None:
        """Return the image, or images of one channel, that are a matrix C, N H W as they lie."""
        while (step := self.moves.maker(name, "Reshape")) is not None:
            name = step.inputs[0]
            shape = self.moves.shape(name)
            if len(shape) == 4 and shape[1] == channels and 1 in shape[:2]:
                return name
        return None


def _integers(
    attributes: Mapping[str, AttributeValue], name: str, *default: int
) -> tuple[int, ...]:
    given = attributes.get(name, default)
    numbers = given if isinstance(given, tuple) else (given,)
    return tuple(int(each) for each in numbers)


def _pair(numbers: Sequence[int]) -> Pair:
    return numbers[0], numbers[1]


def _are_all_images(parts: list[ImagePart], batch: int) -> bool:
    """Tell whether parts have each image of a batch, whole, once."""
    seen: list[int] = []
    for part in parts:
        first = part.axes[0]
        seen.extend(range(first.start, first.start + first.count * first.step, first.step))
    return sorted(seen) == list(range(batch))
