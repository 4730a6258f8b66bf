"""Which storages of a program can be made again, or moved to another memory and back."""

from collections import Counter
from dataclasses import dataclass
from typing import Self

from arenite.planner.program import COMPUTE, Program
from arenite.planner.tensors import TensorKind


@dataclass(frozen=True, slots=True)
class Storages:
    """What the steps of a program do to its storages; views are seen through.

    Attributes:
        views: Number of the step that makes each view; a lowered one has no step.
        pinned: Storages of which there can only be one: what the caller reads, states, what
            another lane touches, and what several tensors or steps write.
        repeatable: Numbers of the steps that may run again.
    """

    views: dict[str, int]
    pinned: frozenset[str]
    repeatable: frozenset[int]

    @classmethod
    def of(cls, program: Program) -> Self:
        """Return them for a program whose views share storage.

        Cost: O(tensors + operands of the steps).
        """
        views: dict[str, int] = {}
        writers: Counter[str] = Counter(program.root(name)[0] for name in program.input_tensors)
        pinned = {program.root(name)[0] for name in program.output_tensors}
        for number, step in enumerate(program.steps):
            operands = program.operands(step)
            aliased = all(program.tensors[name].alias is not None for name in step.writes)
            same = step.operator.is_view(operands) or step.operator.changes_nothing(operands)
            if step.lane == COMPUTE and aliased and same:
                views.update(dict.fromkeys(step.writes, number))
                continue
            writers.update({program.root(name)[0] for name in step.writes})
            if step.lane != COMPUTE:
                pinned.update(program.root(name)[0] for name in (*step.reads, *step.writes))
        writes = {name for step in program.steps for name in step.writes}
        pinned.update(name for name, count in writers.items() if count > 1)
        for tensor in program.tensors.values():
            root = program.root(tensor.name)[0]
            is_part = tensor.name in writes and root != tensor.name and tensor.name not in views
            if tensor.kind is TensorKind.STATE or is_part:
                pinned.add(root)
        again = frozenset(
            number
            for number, step in enumerate(program.steps)
            if step.operator.repeatable and step.lane == COMPUTE and not step.operator.updates
        )
        return cls(views, frozenset(pinned), again)
