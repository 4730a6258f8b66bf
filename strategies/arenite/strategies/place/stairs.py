"""Low plans of records with outlines: first fit in several orders, then a search by ejection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import ParameterValue, Plan, Problem, StrategyKind, UsageRecord
from arenite.planner.placement import Watch, silent
from arenite.strategies.base import native
from arenite.strategies.base.records import breadth_order, colliding, count_conflicts

_MOST_WORK = 1 << 62  # more than any machine does
_MOST_CONFLICTS = 40_000_000  # of stairs, about 1 GB in the native core


@dataclass(frozen=True, slots=True)
class Stairs:
    """Place records by their outlines: others take the free bytes of a rectangle.

    Each record goes to the lowest offset at which none of its stairs shares a byte with one
    that is placed, in several orders. Then a search asks for capacities between the bound and
    the lowest plan. In that plan the records that do not fit are put where what they displace
    weighs least, and what is displaced is put elsewhere likewise.

    Attributes:
        seed: Seed of the random choices.
        max_work: Limit of the search, in pairs of records looked at, by default a second or
            two on a network of 1,500 rows; None for no limit but attempts in vain.
    """

    name: ClassVar[str] = "stairs"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "O(n k log k), k records met by one, and max_work; memory O(n k)"
    source: ClassVar[str] = "our own, after guided ejection search (Nagata and Bräysy 2009)"
    quick: ClassVar[bool] = False
    knows_outlines: ClassVar[bool] = True

    seed: int = 0
    max_work: int | None = 20_000_000

    def why_unsupported(self, problem: Problem) -> str | None:
        reason = native.why_unsupported(problem)
        if reason is not None:
            return reason
        pieces = [stair for record in problem.records for stair in record.stairs]
        num_conflicts = sum(count_conflicts(pieces)) // 2
        if num_conflicts > _MOST_CONFLICTS:
            return f"cannot hold the {num_conflicts} pairs of rectangles that meet"
        collision = colliding(problem.records)
        if collision:
            first, second = sorted(record.name for record in collision)
            return f"cannot keep both {first!r} and {second!r} where they are fixed"
        return None

    def __call__(self, problem: Problem) -> Plan:
        return self.search(problem, silent)

    def search(self, problem: Problem, watch: Watch) -> Plan:
        bound = problem.lower_bound

        def on_progress(offsets: list[int], _height: int) -> bool:
            return watch(Plan.of(problem, tuple(offsets), self.name, self._parameters()), bound)

        offsets = native.core.place_outlined(
            native.records_of(problem),
            native.outlines_of(problem),
            _orders(problem.records),
            bound,
            self.seed,
            _MOST_WORK if self.max_work is None else self.max_work,
            on_progress,
        )
        return Plan.of(problem, tuple(offsets), self.name, self._parameters())

    def _parameters(self) -> Mapping[str, ParameterValue]:
        if self.max_work is None:
            return {"seed": self.seed}
        return {"seed": self.seed, "max_work": self.max_work}


def _orders(records: Sequence[UsageRecord]) -> list[list[int]]:
    """Return the orders in which the records are placed first: none is the best everywhere."""
    indices = range(len(records))
    areas = [
        sum(stair.size * (stair.end - stair.start) for stair in record.stairs)
        for record in records
    ]
    by_load = breadth_order(records)
    by_size = sorted(indices, key=lambda index: -records[index].size)
    by_area = sorted(indices, key=lambda index: -areas[index])
    by_lifetime = sorted(indices, key=lambda index: -records[index].lifetime)
    by_start = sorted(indices, key=lambda index: (records[index].start, -records[index].size))
    # Records that cannot be cut come first; the small ones fill the gaps.
    rigid_first = (
        sorted(order, key=lambda index: not records[index].outline)
        for order in (by_load, by_lifetime, by_start)
    )
    return [by_size, by_area, by_load, *rigid_first]
