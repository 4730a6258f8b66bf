"""The limit of the peak: the working set of a step, or the tensors carried across it.

That decides which rewrite can help. Aliasing, fusing and tiling lower the working set;
reordering, recomputing and spilling lower only carried tensors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.programs.program import Program
from arenite.planner.units import format_size


@dataclass(frozen=True, slots=True)
class StepLoad:
    """The bytes live at one step.

    Attributes:
        step: Index of the operator in the order.
        load: Bytes live.
        working_set: Bytes of the operator's own inputs, outputs and scratch.
    """

    step: int
    operator: str
    load: int
    working_set: int

    @property
    def carried(self) -> int:
        """Bytes live but untouched."""
        return self.load - self.working_set


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The load over the steps and the rewrites that can lower its peak."""

    steps: tuple[StepLoad, ...]

    @property
    def binding(self) -> StepLoad | None:
        """The step at which the load is largest; None without steps.

        Of several, the one with the largest working set, then the first.
        """
        return max(self.steps, key=lambda step: (step.load, step.working_set), default=None)

    @property
    def largest_working_set(self) -> int:
        """Bytes that no order, recomputation or spilling can go below."""
        return max((step.working_set for step in self.steps), default=0)

    @property
    def movable(self) -> int:
        """Bytes of the peak that reordering, recomputing or spilling can save at most."""
        return 0 if self.binding is None else self.binding.load - self.largest_working_set

    @property
    def advice(self) -> str:
        """One sentence: the limit of the peak and the rewrites that can help."""
        binding = self.binding
        if binding is None or binding.load == 0:
            return "No tensor is live."
        where = f"step {binding.step} ({binding.operator})"
        if self.movable == 0:
            return (
                f"The working set binds at {where}: only aliasing, fusing or tiling its "
                "operator can lower the peak; reordering, recomputing and spilling cannot."
            )
        return (
            f"Carried tensors bind at {where}: {format_size(binding.carried)} live there "
            f"untouched; reordering, recomputing or spilling can save up to "
            f"{format_size(self.movable)}, then working sets bind."
        )


def diagnose(program: Program, problem: Problem) -> Diagnosis:
    """Return the load over the steps of `program`, whose records are those of `problem`.

    Of a record with an outline, only the stairs are live, and a step works on the bytes of the
    tensors that it touches.

    Cost: O(records + stairs + operands of the steps).
    """
    num_steps = len(program.steps)
    change = [0] * (num_steps + 1)
    storage_of: dict[str, int] = {}
    working_sets = [0] * num_steps
    for index, record in enumerate(problem.records):
        if num_steps:
            for stair in record.stairs:
                change[stair.start] += stair.size
                change[stair.end] -= stair.size
        for tensor in record.tensors:
            storage_of[tensor] = index
        if not record.tensors:  # scratch: it lives only at its step
            working_sets[record.start] += record.size
    steps: list[StepLoad] = []
    load = 0
    for number, step in enumerate(program.steps):
        load += change[number]
        touched: dict[int, list[str]] = {}
        for name in (*step.reads, *step.writes):
            if name in storage_of:
                touched.setdefault(storage_of[name], []).append(name)
        working_set = working_sets[number] + sum(
            _bytes_touched(program, problem.records[index], names)
            for index, names in touched.items()
        )
        steps.append(StepLoad(number, step.name, load, working_set))
    return Diagnosis(tuple(steps))


def _bytes_touched(program: Program, record: UsageRecord, names: Sequence[str]) -> int:
    if not record.outline:
        return record.size
    places = sorted((program.root(name)[1], program.tensors[name].size) for name in names)
    total = top = 0
    for first, size in places:
        total += max(0, first + size - max(first, top))
        top = max(top, first + size)
    return total
