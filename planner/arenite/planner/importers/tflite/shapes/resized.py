"""What is asked of an operator: which shapes it makes of shapes that are not those in the file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from arenite.planner.operators.imported import AttributeValue
from arenite.planner.program import Array

Shape: TypeAlias = tuple[int, ...]
Options: TypeAlias = Mapping[str, int | float | bool | tuple[int, ...]]


class MisfitError(Exception):
    """The operator does not take inputs of these shapes."""


class UnknownShapeError(MisfitError):
    """What shape the operator makes is known only in the run."""


@dataclass(frozen=True, slots=True)
class Resized:
    """An operator some of whose inputs have another shape than in the file.

    Attributes:
        inputs: Shapes of its inputs, by position; () where one is left out.
        values: Elements of the inputs that are known before the run, by position.
        outputs: Shapes of its outputs as the file states them.
        options: Its options, by the schema's names.
        attributes: How its window slides, if it has one.
    """

    inputs: Sequence[Shape]
    values: Mapping[int, Array]
    outputs: Sequence[Shape]
    options: Options
    attributes: Mapping[str, AttributeValue]

    @property
    def source(self) -> Shape:
        """Shape of the first input."""
        return self.inputs[0]

    def integers(self, position: int) -> Shape:
        """Return the elements of an input that must be known."""
        if position not in self.values:
            raise UnknownShapeError(f"its input {position} is known only in the run")
        return tuple(int(each) for each in self.values[position].reshape(-1))

    def integer(self, name: str, default: int = 0) -> int:
        """Return an option that is an integer."""
        value = self.options.get(name, default)
        return int(value) if isinstance(value, int | bool) else default

    def axis(self, value: int, rank: int | None = None) -> int:
        """Return an axis of the first input, counted from the front."""
        rank = len(self.source) if rank is None else rank
        require(-rank <= value < rank, f"it has no axis {value}")
        return value % rank

    def pair(self, name: str, default: tuple[int, int] = (1, 1)) -> tuple[int, int]:
        """Return an attribute of rows and columns."""
        value = self.attributes.get(name, default)
        assert isinstance(value, tuple)
        return int(value[0]), int(value[1])


def require(fits: bool, reason: str) -> None:
    """Raise unless it fits."""
    if not fits:
        raise MisfitError(reason)


ShapesByCode: TypeAlias = Mapping[str, Callable[[Resized], list[Shape]]]
"""The shapes that operators make, by the schema's names of them."""
