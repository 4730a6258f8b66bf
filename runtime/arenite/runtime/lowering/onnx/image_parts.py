"""What steps of a model move: parts of images, seen through slices and pads."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from arenite.planner.program import Array, Program, Step
from arenite.planner.tensors import TensorKind
from arenite.runtime.lowering.onnx.translation import attributes_of


@dataclass(frozen=True, slots=True)
class Axis:
    """Places along an axis of an image, evenly spaced: those outside of [low, high) are zeros.

    Attributes:
        start: The first place.
        step: From one to the next.
        count: How many there are.
        low: First place that may be seen.
        high: That behind the last.
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
    """The steps of a model that move elements, asked from their results back.

    Args:
        model: A model whose constants are known.
    """

    def __init__(self, model: Program) -> None:
        self._model = model
        self._makers: Mapping[str, Step] = {
            name: step for step in model.steps for name in step.outputs if name
        }

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self._model.tensors[name].shape

    def maker(self, name: str, label: str) -> Step | None:
        """Return the step that makes a tensor, if it is such an operator."""
        step = self._makers.get(name)
        return step if step is not None and step.operator.label == label else None

    def constant(self, name: str) -> Array | None:
        """Return the elements of a constant."""
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
        """Return what a transpose of this order, behind reshapes, reads; None without one."""
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
