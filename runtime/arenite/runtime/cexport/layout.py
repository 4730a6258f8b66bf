"""Where the tensors of a planned program lie in the arena."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from arenite.planner.plan import Plan
from arenite.planner.problem import Problem
from arenite.planner.program import Program
from arenite.planner.tensors import Tensor, TensorKind


@dataclass(frozen=True, slots=True)
class Layout:
    """A program and the bytes that its tensors take.

    Attributes:
        program: The program, its storage shared.
        offsets: First byte of each storage, by the name of its record.
        height: Bytes of the arena.
        shifted: Tensors of bytes without a sign in the model, here stored less 128.
        rows: First byte of each row of the tensors whose rows lie at places of their own.
        has_tables: Whether kernels take tables of rows, of every tensor, as some have such places.
        working: First byte of the working memory of steps that have some, by their number.
    """

    program: Program
    offsets: Mapping[str, int]
    height: int
    shifted: frozenset[str] = frozenset()
    rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    has_tables: bool = False
    working: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, program: Program, problem: Problem, plan: Plan, shifted: frozenset[str]
    ) -> "Layout":
        """Return the layout that a plan states."""
        records = tuple(zip(problem.records, plan.offsets, strict=True))
        offsets = {record.name: offset for record, offset in records}
        # Records without tensors are the working memory of one step.
        working = {record.start: offset for record, offset in records if not record.tensors}
        return cls(program, offsets, plan.height, shifted, working=working)

    def with_rows(
        self, tensors: Mapping[str, Tensor], rows: Mapping[str, tuple[int, ...]]
    ) -> "Layout":
        """Return the layout with tensors that are not in the program, but rows of them are."""
        program = replace(self.program, tensors={**tensors, **self.program.tensors})
        return replace(self, program=program, rows=rows, has_tables=bool(rows))

    def is_constant(self, name: str) -> bool:
        """Tell whether a tensor lies among the weights, not in the arena."""
        root, _ = self.program.root(name)
        return self.program.tensors[root].kind is TensorKind.CONSTANT

    def offset(self, name: str) -> int:
        """Return the first byte of a tensor in the arena.

        An empty tensor takes no byte, and lies nowhere in particular.
        """
        root, inside = self.program.root(name)
        if self.program.tensors[name].size == 0:
            return 0
        return self.offsets[root] + inside
