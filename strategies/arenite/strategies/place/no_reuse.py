"""No reuse: every record has bytes of its own."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.planner import Plan, Problem, StrategyKind
from arenite.planner.units import align_up


@dataclass(frozen=True, slots=True)
class NoReuse:
    """Lay the records end to end in the problem's order, above those that are fixed.

    The baseline, and the plan to debug with: no write can reach another record's bytes.
    """

    name: ClassVar[str] = "no-reuse"
    kind: ClassVar[StrategyKind] = StrategyKind.OFFSETS
    complexity: ClassVar[str] = "O(n)"
    source: ClassVar[str] = "TFLite Micro, LinearMemoryPlanner"
    quick: ClassVar[bool] = True

    def why_unsupported(self, _problem: Problem) -> str | None:
        return None

    def __call__(self, problem: Problem) -> Plan:
        records = problem.records
        top = max((r.offset + r.size for r in records if r.offset is not None), default=0)
        offsets = []
        for record in records:
            if record.offset is not None:
                offsets.append(record.offset)
            else:
                offset = align_up(top, record.alignment)
                offsets.append(offset)
                top = offset + record.size
        return Plan.of(problem, tuple(offsets), self.name)
