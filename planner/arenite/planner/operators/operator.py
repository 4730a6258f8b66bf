"""The traits of operators; the base class promises nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from arenite.planner.operators.parts import Part
from arenite.planner.operators.streams import Along, row_by_row
from arenite.planner.operators.windows import Sliding, Window
from arenite.planner.sizes import same_lengths
from arenite.planner.tensors import ROW_AXIS, Tensor

Region: TypeAlias = tuple[tuple[int, int], ...]
"""A half-open range of indices for each axis of a tensor."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The tensors of one step, by position; None where an optional one is left out."""

    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]

    def input(self, position: int) -> Tensor | None:
        """Return an input, None if it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    @property
    def source(self) -> Tensor | None:
        """The first input."""
        return self.input(0)

    @property
    def result(self) -> Tensor | None:
        """The first output."""
        return self.outputs[0] if self.outputs else None


def whole(tensor: Tensor) -> Region:
    """Return the region that is all of a tensor."""
    return tuple((0, length) for length in tensor.shape)


class Operator:
    """What a step computes.

    This class promises nothing: its outputs may depend on every byte of its inputs, which it
    may still read after it has begun to write. Subclasses override the traits that they promise.

    Attributes:
        reduces_groups: Whether the operands that `overwritable` names are read a group of
            elements at a time (normalisation), not element by element.
        is_clamp: Whether it clamps its first input to constant bounds and does nothing else.
        takes_clamp: Whether kernels of it can clamp its result as they write it.
        fixes_order: Whether a program with it must keep the order of its steps.
        repeatable: Whether the same inputs give the same outputs every time, so that a step may
            run once more instead of keeping what it made.
    """

    __slots__ = ()

    reduces_groups: ClassVar[bool] = False
    is_clamp: ClassVar[bool] = False
    takes_clamp: ClassVar[bool] = False
    fixes_order: ClassVar[bool] = False
    repeatable: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """Name for display: that of the model's format, or of our own runtime."""
        return type(self).__name__

    @property
    def computes_as(self) -> type["Operator"]:
        """Class of the operator that computes: that of the original, if this is a part of one."""
        return type(self)

    @property
    def updates(self) -> tuple[int, ...]:
        """Positions of the inputs that it also writes: states."""
        return ()

    def scratch(self, operands: Operands) -> int:  # overridden with it
        """Return the bytes of working memory it needs while it runs, and only then."""
        return 0

    def multiply_adds(self, operands: Operands) -> int:
        """Return the number of multiply-adds."""
        return 0

    def bytes_touched(self, operands: Operands) -> int:
        """Return the bytes of memory that it reads and writes."""
        if self.is_view(operands):
            return 0
        return sum(tensor.size for tensor in (*operands.inputs, *operands.outputs) if tensor)

    def bytes_moved(self, operands: Operands) -> tuple[int, int]:
        """Return the bytes that it moves out to another memory, and those that it moves back."""
        return 0, 0

    def is_view(self, operands: Operands) -> bool:
        """Tell whether the first output holds the bytes of the first input."""
        return False

    def changes_nothing(self, operands: Operands) -> bool:
        """Tell whether the first output has the type, shape and elements of the first input."""
        return False

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the inputs whose place the first output may take.

        No part of such an input is read after its bytes have been overwritten. Whether another
        step still needs the input is for the caller to check.
        """
        return ()

    def parts(self, operands: Operands) -> tuple[Part, ...]:
        """Return outputs that are part of an input, and inputs that are part of an output."""
        return ()

    def sliding(self, operands: Operands) -> Sliding | None:
        """Return how a window slides over the first input, None if none does."""
        return None

    def with_window(
        self, row_stride: int, padding: tuple[int, int, int, int]
    ) -> "Operator | None":
        """Return the same with its window elsewhere, None if it has no window to move.

        Args:
            row_stride: Rows between two positions.
            padding: Rows and columns around the image: top, right, bottom, left.
        """
        return None

    def makes_rows(self, operands: Operands) -> bool:
        """Tell whether any rows of the first output can be made apart from the others.

        Rows are axis 1 of one image or of one list: N = 1, of at least three axes. They are made
        from rows of the inputs that may lie apart, too: those of `input_region`.
        """
        return False

    def reads_rows(self, position: int) -> bool:
        """Tell whether rows of its result need rows of an input, where that has some.

        A filter is needed whole, even if its shape is that of an image.
        """
        return True

    def row_scratch(self, operands: Operands) -> int:
        """Return the bytes of working memory that it needs while it makes rows, however few."""
        return 0

    def turns_a_row(self, operands: Operands) -> int:
        """Return how many steps run for each row that it makes."""
        return 1

    def accumulates_rows(self, operands: Operands) -> int:
        """Return the bytes of working memory in which it sums up rows of its first input.

        Whatever rows it is given at once, from the first to the last, the sums are the same, and
        so is the result, which is made with the last row. 0: it sums up no rows.
        """
        return 0

    def input_region(self, operands: Operands, position: int, region: Region) -> Region:
        """Return the region of an input that a region of the first output depends on.

        Of an image under a window that is the region under its positions, of other inputs all.

        Args:
            position: Position of an input that is not left out.
            region: Region of the first output; no axis of it is empty.
        """
        tensor, result = operands.inputs[position], operands.result
        assert tensor is not None
        sliding = None if position or result is None else self.sliding(operands)
        if sliding is None or result is None:
            return whole(tensor)
        channels = (each.shape[sliding.channel_axis] for each in (tensor, result))
        return sliding.input_region(region, *channels)

    def rows_read(self, operands: Operands, position: int) -> Iterator[tuple[int, int]]:
        """Yield the rows of an input that each row of the result depends on, (0, 0) for none.

        Args:
            position: Position of an input that has rows.
        """
        result = operands.result
        assert result is not None
        region = list(whole(result))
        for row in range(result.shape[ROW_AXIS]):
            region[ROW_AXIS] = (row, row + 1)
            yield self.input_region(operands, position, tuple(region))[ROW_AXIS]

    def along(self, operands: Operands, axes: Sequence[int | None]) -> Along | None:
        """Return how the result is made along an axis of inputs, None if it needs all their rows.

        That follows from `sliding` and `input_region`.

        Args:
            axes: For each input its axis; None for one without rows, such as a weight.
        """
        for axis in aligned_axes(operands, axes):
            windows = self._windows(operands, axes, axis)
            if windows is not None:
                return Along(axis, tuple(axes), windows)
        return None

    def _windows(
        self, operands: Operands, axes: Sequence[int | None], axis: int
    ) -> tuple[Window | None, ...] | None:
        """Return the windows over the rows of the inputs, None if this axis does not follow."""
        result = operands.result
        assert result is not None
        found: list[Window | None] = []
        for position, (tensor, own) in enumerate(zip(operands.inputs, axes, strict=True)):
            if tensor is None or own is None:
                found.append(None)
                if tensor is not None and self._read_at(operands, position, axis, 0) != whole(
                    tensor
                ):
                    return None
                continue
            sliding = None if position else self.sliding(operands)
            if sliding is not None and (axis >= sliding.row_axis or axis == sliding.channel_axis):
                if own != axis or axis - sliding.row_axis not in (0, 1):
                    return None
                found.append(sliding.rows if axis == sliding.row_axis else sliding.columns)
                continue
            rows = tensor.shape[own]
            if rows != result.shape[axis] or not rows:
                return None
            for row in {0, rows // 2, rows - 1}:
                if self._read_at(operands, position, axis, row)[own] != (row, row + 1):
                    return None
            found.append(row_by_row(rows))
        return tuple(found)

    def _read_at(self, operands: Operands, position: int, axis: int, row: int) -> Region:
        """Return the region of an input that the indices `row` along an axis depend on."""
        result = operands.result
        assert result is not None
        region = list(whole(result))
        region[axis] = (row, row + 1)
        return self.input_region(operands, position, tuple(region))

    def cut(self, operands: Operands, pieces: Operands, along: Along) -> "Operator | None":
        """Return the operator that makes rows of the result from rows of the inputs.

        Args:
            operands: Its operands.
            pieces: The operands as they are then: the rows under the positions of the windows,
                none of them padding; operands without rows as they were.
            along: How it makes rows.

        Returns:
            None if no operator does that, or not all rows are made alike.
        """
        return None

    def cut_at_border(
        self, along: Along, made: tuple[int, int], taken: tuple[int, int]
    ) -> "Operator | None":
        """Return the operator that makes rows of the result of which some depend on padding.

        Args:
            along: How it makes rows.
            made: The rows, from the first to before the second.
            taken: The rows of the first input under them, less padding.

        Returns:
            None if no operator does that.
        """
        return None


def aligned_axes(operands: Operands, axes: Sequence[int | None]) -> Iterator[int]:
    """Yield the axes of the only result, first the one that stands where that of an input does.

    None if there are several results, or the result is empty.
    """
    result = operands.result
    if result is None or len(operands.outputs) != 1 or not result.num_elements:
        return
    first = next(
        (
            own + len(result.shape) - len(tensor.shape)
            for tensor, own in zip(operands.inputs, axes, strict=True)
            if tensor is not None and own is not None
        ),
        0,
    )
    yield from sorted(range(len(result.shape)), key=lambda axis: (axis != first, axis))


def same_layout(one: Tensor | None, other: Tensor | None) -> bool:
    """Tell whether two tensors are present and have the same type and shape."""
    return (
        one is not None
        and other is not None
        and one.dtype is other.dtype
        and same_lengths(one.shape, other.shape)
    )


def same_places(one: Tensor | None, other: Tensor | None) -> bool:
    """Tell whether two tensors are present and equal indices lie at equal offsets."""
    return (
        one is not None
        and other is not None
        and one.dtype.bits == other.dtype.bits
        and same_lengths(one.shape, other.shape)
    )


def broadcast_region(tensor: Tensor, result: Tensor, region: Sequence[tuple[int, int]]) -> Region:
    """Return the region of a tensor that broadcasts to a region of the result."""
    missing = len(result.shape) - len(tensor.shape)
    if missing < 0:
        return whole(tensor)
    return tuple(
        (0, 1) if length == 1 else stretch
        for length, stretch in zip(tensor.shape, region[missing:], strict=True)
    )
