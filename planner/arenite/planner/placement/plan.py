"""A plan: where each record lies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

from arenite.planner.placement.problem import Problem

ParameterValue: TypeAlias = bool | int | float | str


@dataclass(frozen=True, slots=True)
class SharedObjects:
    """Whole buffers, each owned by one record at a time.

    Attributes:
        assignment: For each record, the index of its object.
        sizes: Bytes of each object.
        lower_bound: Bytes that any assignment of the same records needs: the sum of the
            positional maxima.
    """

    assignment: tuple[int, ...]
    sizes: tuple[int, ...]
    lower_bound: int

    @property
    def total(self) -> int:
        """Sum of the objects' sizes."""
        return sum(self.sizes)


@dataclass(frozen=True, slots=True)
class Plan:
    """An offset for each record of a problem.

    Attributes:
        offsets: In the order of the problem's records, each from the start of its memory.
        heights: For each memory, the bytes it takes: the first byte above all its records.
        strategy: Name of the strategy that made it.
        lower_bounds: Bytes that every plan of the problem needs of each memory, as far as is
            known.
        parameters: The strategy's parameters, including its seed.
        objects: The assignment behind the offsets, for shared-objects strategies.
    """

    offsets: tuple[int, ...]
    heights: tuple[int, ...]
    strategy: str
    lower_bounds: tuple[int, ...]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    objects: SharedObjects | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        offsets: tuple[int, ...],
        strategy: str,
        parameters: Mapping[str, ParameterValue] | None = None,
        *,
        lower_bound: int | None = None,
        objects: SharedObjects | None = None,
    ) -> Self:
        """Return the plan with these offsets; its heights are computed.

        Args:
            problem: The placed records.
            offsets: One for each record.
            lower_bound: A proved bound above the problem's own, if any; only for a problem
                with one memory.

        Raises:
            ValueError: A bound is given for several memories.
        """
        heights = {memory.name: 0 for memory in problem.memories}
        for record, offset in zip(problem.records, offsets, strict=True):
            heights[record.memory] = max(heights[record.memory], offset + record.size)
        plan = cls(
            offsets,
            tuple(heights.values()),
            strategy,
            problem.lower_bounds,
            parameters or {},
            objects,
        )
        return plan if lower_bound is None else plan.with_bound(lower_bound)

    def with_bound(self, lower_bound: int) -> Self:
        """Return the plan with this proved bound, unless its own is higher.

        Raises:
            ValueError: The plan is for several memories.
        """
        if len(self.lower_bounds) != 1:
            raise ValueError(f"one bound given for {len(self.lower_bounds)} memories")
        return replace(self, lower_bounds=(max(self.lower_bounds[0], lower_bound),))

    @classmethod
    def merged(cls, problem: Problem, plans: Sequence["Plan"]) -> Self:
        """Combine plans of the individual memories, in the order of `Problem.by_memory`."""
        offsets = {
            memory.name: iter(plan.offsets)
            for memory, plan in zip(problem.memories, plans, strict=True)
        }
        parameters = {
            f"{memory.name}.{key}": value
            for memory, plan in zip(problem.memories, plans, strict=True)
            for key, value in plan.parameters.items()
        }
        same = all(plan.parameters == plans[0].parameters for plan in plans)
        return cls(
            tuple(next(offsets[record.memory]) for record in problem.records),
            tuple(plan.height for plan in plans),
            " + ".join(dict.fromkeys(plan.strategy for plan in plans)),
            tuple(plan.lower_bound for plan in plans),
            plans[0].parameters if same else parameters,
            _merged_objects(problem, plans),
        )

    @property
    def height(self) -> int:
        """Bytes of the arena: its height, or the sum where there are several memories."""
        return sum(self.heights)

    @property
    def lower_bound(self) -> int:
        """Bytes that every plan needs, over all memories, as far as is known."""
        return sum(self.lower_bounds)

    @property
    def optimal(self) -> bool:
        """Whether no plan can be lower in any memory: each height equals its proved bound."""
        return self.heights == self.lower_bounds

    @property
    def gap(self) -> float:
        """How far the height is above the bound, as a fraction of the bound."""
        return self.height / self.lower_bound - 1 if self.lower_bound else 0.0


def _merged_objects(problem: Problem, plans: Sequence[Plan]) -> SharedObjects | None:
    """Return the objects of all memories one after the other, None if one has none."""
    found = [plan.objects for plan in plans if plan.objects is not None]
    if len(found) < len(plans):
        return None
    sizes: list[int] = []
    assignments: dict[str, Iterator[int]] = {}
    for memory, objects in zip(problem.memories, found, strict=True):
        first = len(sizes)
        sizes += objects.sizes
        assignments[memory.name] = iter([first + each for each in objects.assignment])
    return SharedObjects(
        tuple(next(assignments[record.memory]) for record in problem.records),
        tuple(sizes),
        sum(objects.lower_bound for objects in found),
    )
