"""Steps that make some columns of an image: narrow steps, and the tensors between them.

A region that runs in strips of columns makes its result strip by strip. The tensors between its
steps are then as narrow as the strip and the columns that windows add, and their rows are kept as
those of any region in bands. Columns that windows of two strips share are computed for each::

    x               a        b        y
    |...........|   |....|   |...|    |..|
    |...........| > |....| > |...| >  |..|  all rows, then the next strip
    |...........|   |....|   |...|    |..|
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from arenite.planner import Program, Tensor, TensorKind
from arenite.planner.operators import Operands, Operator, whole
from arenite.planner.programs import RowStep
from arenite.planner.sizes import depends
from arenite.planner.tensors import row_bytes

Columns: TypeAlias = tuple[int, int]
"""The first column, and the one after the last."""
COLUMN_AXIS = 2
"""The axis of columns of an image, which is stored N, H, W, C."""


@dataclass(frozen=True, slots=True)
class NarrowStep:
    """A step as it makes some columns of its result.

    Attributes:
        operator: Makes them from narrow operands.
        operands: The operands, images as narrow as they are read and made.
        made: Columns of the result.
        read: Columns of the operands that it reads in rows, by position.
    """

    row_step: RowStep
    operator: Operator
    operands: Operands
    made: Columns
    read: Mapping[int, Columns]

    @property
    def scratch(self) -> int:
        return self.operator.row_scratch(self.operands)

    @property
    def multiply_adds(self) -> int:
        return self.operator.multiply_adds(self.operands)


class Narrowing:
    """Steps that end with a given one, each as it makes the columns that those after it read."""

    def __init__(self, program: Program, steps: Sequence[RowStep | None]) -> None:
        """Keep what is found for later questions.

        Args:
            steps: All steps of the program, None for those that cannot run row by row.
        """
        self._program = program
        self._steps = steps
        self._known: dict[tuple[int, Columns], _Chain] = {}

    def of(self, start: int, stop: int, columns: Columns) -> Sequence[NarrowStep] | None:
        """Return some steps as they make columns of the last's result; None if they cannot.

        Each step but the last must be read by a later one of them.
        """
        chain = self._known.get((stop, columns))
        if chain is None:
            last = self._steps[stop - 1]
            wanted = {} if last is None else {last.result.name: columns}
            chain = self._known[stop, columns] = _Chain(wanted, [])
        while chain.can_grow and len(chain.steps) < stop - start:
            self._grow(chain, self._steps[stop - 1 - len(chain.steps)])
        count = stop - start
        return chain.steps[count - 1 :: -1] if len(chain.steps) >= count else None

    def strips(self, start: int, stop: int, columns: int, width: int) -> list[Columns] | None:
        """Return strips of the last step's result, None if the steps cannot make columns apart.

        The first and the last strip add columns on one side only, so they may be wider: as long
        as no more lies between the steps.

        Args:
            columns: Columns of the result.
            width: Most columns of a strip between others.
        """
        middle = (columns - width) // 2
        inner = self.of(start, stop, (middle, middle + width))
        if inner is None:
            return None
        most, edge = _bytes_between(inner), width
        while edge < columns:
            wider = self.of(start, stop, (0, edge + 1))
            if wider is None or _bytes_between(wider) > most:
                break
            edge += 1
        return strips(columns, width, edge)

    def _grow(self, chain: "_Chain", row_step: RowStep | None) -> None:
        made = None if row_step is None else chain.wanted.get(row_step.result.name)
        found = None
        if row_step is not None and made is not None:
            found = _narrow(row_step, self._program.operands(row_step.step), made)
        if row_step is None or found is None:
            chain.can_grow = False
            return
        chain.steps.append(found)
        for reads in row_step.reads:
            first, stop = found.read[reads.position]
            known = chain.wanted.get(reads.tensor, (first, stop))
            chain.wanted[reads.tensor] = (min(first, known[0]), max(stop, known[1]))


def _bytes_between(steps: Sequence[NarrowStep]) -> int:
    """Return the bytes of a row of each tensor between the steps."""
    results = (each.operands.outputs[0] for each in steps[:-1])
    return sum(row_bytes(each) for each in results if each is not None)


@dataclass(slots=True)
class _Chain:
    """Narrow steps, the last first, and the columns wanted of what earlier steps make."""

    wanted: dict[str, Columns]
    steps: list[NarrowStep]
    can_grow: bool = True


def _narrow(row_step: RowStep, operands: Operands, made: Columns) -> NarrowStep | None:
    """Return a step as it makes some columns, None if it cannot."""
    result, operator = row_step.result, row_step.step.operator
    images = {reads.position for reads in row_step.reads}
    if row_step.accumulators or not _is_image(result):
        return None
    read: dict[int, Columns] = {}
    sliding = operator.sliding(operands)
    if sliding is not None:
        if (sliding.row_axis, sliding.channel_axis) != (1, 3):
            return None
        over, down = sliding.columns, sliding.rows
        low, high = over.under(*made)
        read[0] = over.read(*made)
        if read[0][0] >= read[0][1]:
            return None
        sides = (max(0, down.before), max(0, high - over.length), max(0, down.after), max(0, -low))
        moved = operator.with_window(down.stride, sides)
        if moved is None:
            return None
        operator = moved
    region = list(whole(result))
    region[COLUMN_AXIS] = made
    inputs: list[Tensor | None] = []
    for position, operand in enumerate(operands.inputs):
        if operand is None or position not in images:
            if operand is not None and position not in read:
                needed = row_step.step.operator.input_region(operands, position, tuple(region))
                if needed != whole(operand):
                    return None
            inputs.append(operand)
            continue
        if not _is_image(operand):
            return None
        if position not in read:
            columns = row_step.step.operator.input_region(operands, position, tuple(region))
            if columns[COLUMN_AXIS] != made or operand.shape[2] != result.shape[2]:
                return None
            read[position] = made
        inputs.append(cut(operand, operand.name, read[position]))
    narrow = Operands(tuple(inputs), (cut(result, result.name, made),))
    return NarrowStep(row_step, operator, narrow, made, read)


def _is_image(tensor: Tensor) -> bool:
    return len(tensor.shape) == 4 and not any(depends(length) for length in tensor.shape)


def cut(tensor: Tensor, name: str, columns: Columns) -> Tensor:
    """Return some columns of an image as an image of its own."""
    shape = (*tensor.shape[:2], columns[1] - columns[0], tensor.shape[3])
    return replace(tensor, name=name, shape=shape, kind=TensorKind.ACTIVATION, alias=None)


def strips(columns: int, width: int, edge: int) -> list[Columns]:
    """Return strips of so many columns, from left to right, at least two.

    Args:
        columns: Columns of the whole.
        width: Most columns of a strip between others.
        edge: Columns of the first and the last strip, if they leave any.
    """
    edge = min(edge, -(-columns // 2))
    between = columns - 2 * edge
    count = max(0, -(-between // width))
    ends = [edge + between * index // count for index in range(count + 1)] if count else [edge]
    return list(pairwise((0, *ends, columns)))
