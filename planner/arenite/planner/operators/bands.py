"""Rows of the result of an operator, as a step of their own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.sizes import same_lengths


@dataclass(frozen=True, slots=True)
class Pieces:
    """An operand of a step as its bands see it: one tensor, or pieces of some rows each.

    Attributes:
        tensor: Name of the operand in the program that did not run in bands.
        firsts: The first row of each piece that is there, ascending; () if it is one tensor.
        wider: Name of the tensor that this is a strip of; empty if it is none.
    """

    tensor: str
    shape: tuple[int, ...]
    firsts: tuple[int, ...] = ()
    wider: str = ""

    @property
    def model_tensor(self) -> str:
        """Name of the tensor of the model that it is, or is a strip of."""
        return self.wider or self.tensor

    @property
    def count(self) -> int:
        """Number of tensors."""
        return max(1, len(self.firsts))


@dataclass(frozen=True, slots=True)
class Band(Operator):
    """Some rows of the result of an operator, or of the operand that it sums up.

    An operator that sums up rows has one operand more for the sums: an output of its first turn,
    input and output of the later ones.

    Attributes:
        operator: Makes all the rows.
        step: Name of the step that these rows are a part of.
        inputs: Its operands, in the order of the operator's; None where one is left out.
        replaceable: Operands that lie below each other as the result does, whose place it may
            take.
        sums: Whether it sums up rows. Only the last turn writes the result.
        work: Multiply-adds of these rows.
        wider: Name of the step that `step` is a strip of; empty if it is none.
        working_memory: Bytes that it needs at each turn, beside the sums.
    """

    operator: Operator
    step: str
    first: int
    rows: int
    inputs: tuple[Pieces | None, ...]
    outputs: tuple[Pieces | None, ...]
    replaceable: tuple[int, ...] = ()
    sums: bool = False
    work: int = 0
    wider: str = ""
    working_memory: int = 0

    @property
    def model_step(self) -> str:
        """Name of the step of the model that these rows, or columns of them, are a part of."""
        return self.wider or self.step

    @property
    def label(self) -> str:
        return self.operator.label

    @property
    def computes_as(self) -> type[Operator]:
        return self.operator.computes_as

    def pieces_by_name(
        self, inputs: Sequence[str], outputs: Sequence[str]
    ) -> Iterator[tuple[str, Pieces, int]]:
        """Yield the tensors of its step, each with the operand that it is or is a piece of.

        And with its first row in that.

        Args:
            inputs: Names of the tensors that the step reads.
            outputs: Names of those that it writes.
        """
        for operands, names in ((self.inputs, inputs), (self.outputs, outputs)):
            place = 0
            for pieces in operands:
                count = 1 if pieces is None else pieces.count
                if pieces is not None:
                    among = names[place : place + count]
                    for name, first in zip(among, pieces.firsts or (0,), strict=True):
                        yield name, pieces, first
                place += count

    def multiply_adds(self, operands: Operands) -> int:
        return self.work

    def scratch(self, operands: Operands) -> int:
        return self.working_memory

    def overwritable(self, operands: Operands) -> tuple[int, ...]:
        """Return the only piece of each operand that has the rows of the only piece made."""
        made = self.outputs[0]
        if made is None or made.count != 1 or len(operands.outputs) != 1:
            return ()
        found: list[int] = []
        place = 0
        for position, pieces in enumerate(self.inputs):
            if position in self.replaceable and pieces is not None and pieces.count == 1:
                same = pieces.firsts == made.firsts
                one, other = operands.inputs[place], operands.result
                if (
                    same
                    and one is not None
                    and other is not None
                    and same_lengths(one.shape, other.shape)
                ):
                    found.append(place)
            place += 1 if pieces is None else pieces.count
        return tuple(found)
