"""Which rows of its inputs each row of a step's result depends on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arenite.planner.operators.operator import Operands
from arenite.planner.programs.program import Program, Step
from arenite.planner.sizes import Dimension, bounds
from arenite.planner.tensors import ROW_AXIS, Tensor, TensorKind, has_rows, num_rows


@dataclass(frozen=True, slots=True)
class RowReads:
    """The rows of one operand that a step reads.

    Attributes:
        position: Position of the operand among the step's inputs.
        tensor: Name of the operand.
        first: For each row of the result the lowest row that it or a later one reads.
        stop: For each row of the result the first row above those that it or an earlier one
            reads.
    """

    position: int
    tensor: str
    first: tuple[int, ...]
    stop: tuple[int, ...]

    def needed(self, row: int, end: int) -> tuple[int, int]:
        """Return the rows that the rows of the result from `row` to before `end` read."""
        return self.first[row], self.stop[end - 1]

    def still_needed(self, end: int) -> int:
        """Return the lowest row that is read once the rows before `end` are made."""
        return self.first[end] if end < len(self.first) else self.stop[-1]


@dataclass(frozen=True, slots=True)
class RowStep:
    """A step whose result can be made row by row.

    Attributes:
        num_rows: Rows that its turns count: those of the result, or of the operand that it
            sums up.
        accumulators: Bytes in which it sums up rows of its operand; 0 if it does not.
        reads: The operands of which it reads some rows at a time.
        overwritable: Operands whose rows the rows of the result with equal numbers may overwrite.
        multiply_adds: Multiply-adds of all its rows together.
        constant_bytes: Bytes of the constants, all of which each turn reads.
        scratch: Bytes of working memory at each turn.
        turns_a_row: Steps that run for each row.
    """

    step: Step
    result: Tensor
    num_rows: int
    accumulators: int
    reads: tuple[RowReads, ...]
    overwritable: tuple[str, ...]
    multiply_adds: int
    constant_bytes: int
    scratch: int = 0
    turns_a_row: int = 1


def row_step(program: Program, step: Step) -> RowStep | None:
    """Return how a step can run row by row, None if it cannot."""
    operands = program.operands(step)
    result = operands.result
    if result is None or len(step.writes) != 1:
        return None
    accumulators = step.operator.accumulates_rows(operands)
    if accumulators:
        return _accumulating(step, operands, result, accumulators, program.dimensions)
    if not has_rows(result) or not step.operator.makes_rows(operands):
        return None
    reads: list[RowReads] = []
    for position, operand in enumerate(operands.inputs):
        if operand is None or operand.kind is TensorKind.CONSTANT:
            continue
        if operand.kind is TensorKind.STATE:
            return None
        if not has_rows(operand) or not step.operator.reads_rows(position):
            continue
        reads.append(_reads(step, operands, position, operand))
    if not reads:
        return None
    overwritable = tuple(
        step.inputs[position] for position in step.operator.overwritable(operands)
    )
    work = step.operator.multiply_adds(operands)
    constants = sum(
        operand.size
        for operand in operands.inputs
        if operand is not None and operand.kind is TensorKind.CONSTANT
    )
    return RowStep(
        step, result, num_rows(result), 0, tuple(reads), overwritable, work, constants,
        step.operator.row_scratch(operands), step.operator.turns_a_row(operands),
    )  # fmt: skip


def steps_by_rows(program: Program, is_allowed: Callable[[RowStep], bool]) -> frozenset[str]:
    """Return the names of the steps that can run row by row, and may.

    Args:
        is_allowed: Whether a step that could run row by row may.
    """
    found = (row_step(program, step) for step in program.steps)
    return frozenset(each.step.name for each in found if each is not None and is_allowed(each))


def _accumulating(
    step: Step,
    operands: Operands,
    result: Tensor,
    accumulators: int,
    dimensions: Sequence[Dimension],
) -> RowStep | None:
    source = operands.source
    if source is None or source.kind is TensorKind.CONSTANT or not has_rows(source):
        return None
    if bounds(source.shape[ROW_AXIS], dimensions)[0] < 1:
        return None  # of no rows there is no sum
    rows = num_rows(source)
    reads = RowReads(0, source.name, tuple(range(rows)), tuple(range(1, rows + 1)))
    work = step.operator.multiply_adds(operands)
    return RowStep(step, result, rows, accumulators, (reads,), (), work, 0)


def _reads(step: Step, operands: Operands, position: int, operand: Tensor) -> RowReads:
    """Return the rows of an operand that each row reads."""
    first: list[int] = []
    stop: list[int] = []
    for low, high in step.operator.rows_read(operands, position):
        # A row that reads padding alone still has an operand: the row next to it.
        first.append(min(low, num_rows(operand) - 1))
        stop.append(max(high, first[-1] + 1))
    # Rows freed must not be needed later.
    for row in reversed(range(len(first) - 1)):
        first[row] = min(first[row], first[row + 1])
    for row in range(1, len(stop)):
        stop[row] = max(stop[row], stop[row - 1])
    stop[-1] = num_rows(operand)  # rows that nothing reads are made, too
    return RowReads(position, operand.name, tuple(first), tuple(stop))
