"""ExecuTorch's greedy: objects whose tenants may lie one above the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from arenite.planner import Plan, Problem, StrategyKind
from arenite.planner.units import align_up
from arenite.strategies.share.best_fit import Tenancy
from arenite.strategies.share.objects import lay_end_to_end, refuse_fixed_offsets


@dataclass(frozen=True, slots=True)
class Executorch:
    """Take records by non-increasing size, equal sizes in the problem's order.

    Upstream takes equal sizes in the order of a set.

    A record goes to the bottom of the first object with no tenant that is live with it; else
    into the first object with enough space above such tenants; else it makes a new object of
    its size, which never grows. Holes below the highest tenant are lost.

    Several tenants may own parts of one object at once, which no other shared-objects
    strategy allows. So the plan states no assignment: it may undercut the lower bound of
    shared objects, and only the plan's own holds.
    """

    name: ClassVar[str] = "executorch"
    kind: ClassVar[StrategyKind] = StrategyKind.OBJECTS
    complexity: ClassVar[str] = "O(n^2) array operations; memory O(n)"
    source: ClassVar[str] = "ExecuTorch, greedy in exir/memory_planning.py"
    quick: ClassVar[bool] = True

    def why_unsupported(self, problem: Problem) -> str | None:
        return refuse_fixed_offsets(problem)

    def __call__(self, problem: Problem) -> Plan:
        records = problem.records
        tenancy = Tenancy(records)
        sizes: list[int] = []
        inner = [0] * len(records)
        tops = np.zeros(len(records), np.int64)
        for index in sorted(range(len(records)), key=lambda index: -records[index].size):
            record = records[index]
            bases = [align_up(int(top), record.alignment) for top in tenancy.highest(index, tops)]
            chosen = _first_with_room(bases, sizes, record.size)
            if chosen is None:
                sizes.append(record.size)
            else:
                inner[index] = bases[chosen]
            tops[index] = inner[index] + record.size
            tenancy.assign(index, chosen)
        assignment = tenancy.assignment
        starts = lay_end_to_end(records, assignment, sizes)
        offsets = (
            starts[chosen] + offset for chosen, offset in zip(assignment, inner, strict=True)
        )
        return Plan.of(problem, tuple(offsets), self.name)


def _first_with_room(bases: Sequence[int], sizes: Sequence[int], size: int) -> int | None:
    """Return the first object that is vacant, else the first with space above its tenants."""
    if 0 in bases:
        return bases.index(0)
    for index, (base, room) in enumerate(zip(bases, sizes, strict=True)):
        if base + size <= room:
            return index
    return None
