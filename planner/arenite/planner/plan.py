"""A plan: where each record lies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, TypeAlias

from arenite.planner.problem import Problem

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
        offsets: In the order of the problem's records.
        height: First byte above every record: the size of the arena.
        strategy: Name of the strategy that made it.
        parameters: Those of the strategy, its seed among them.
        lower_bound: Bytes that every plan of the problem needs, as far as is known.
        objects: The assignment the offsets come from, for shared-objects strategies.
    """

    offsets: tuple[int, ...]
    height: int
    strategy: str
    lower_bound: int
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
        """Return the plan of these offsets, its height computed.

        Args:
            problem: What was placed.
            offsets: One for each record.
            strategy: Name of the maker.
            parameters: What the maker was told.
            lower_bound: A proved bound above the problem's own, if there is one.
            objects: The assignment the offsets come from.
        """
        ends = (
            offset + record.size for record, offset in zip(problem.records, offsets, strict=True)
        )
        return cls(
            offsets,
            max(ends, default=0),
            strategy,
            max(problem.lower_bound, lower_bound or 0),
            parameters or {},
            objects,
        )

    @property
    def optimal(self) -> bool:
        """Whether no plan can be lower: the height equals a proved bound."""
        return self.height == self.lower_bound

    @property
    def gap(self) -> float:
        """Distance to the bound as a share of it: 0 when optimal."""
        return self.height / self.lower_bound - 1 if self.lower_bound else 0.0
