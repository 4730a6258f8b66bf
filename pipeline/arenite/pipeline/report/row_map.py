"""The memory map of a program of many turns, in few bytes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.report.records import record_facts
from arenite.planner import Plan, Problem, Source, UsageRecord, diagnose
from arenite.planner.placement import load_spans
from arenite.strategies import owners_of

Numbers: TypeAlias = NDArray[Any]

_PARTS = 1_000_000
"""Cells of a map: shares are counted in these."""


@dataclass(frozen=True, slots=True)
class RowMap:
    """Rectangles of a program's plan, with their names and kinds.

    Attributes:
        height: Bytes of the arena.
        turns: Steps that run.
        starts: For each rectangle, its first turn.
        ends: The turn after its last.
        bottoms: Its lowest byte.
        tops: The byte above its highest.
        owners: Index of its tensor in `tensors`.
        makers: Index of its operator in `operators`.
        tensors: Names in the model, a tensor of rows once.
        operators: The operators that make them.
        shares: How much of the map the results of each operator fill, in millionths.
        times: Turns at which the load changes.
        loads: Live bytes from there on, a line.
        binding: The turn of the largest load; None where nothing is live.
    """

    height: int
    turns: int
    starts: Numbers
    ends: Numbers
    bottoms: Numbers
    tops: Numbers
    owners: Numbers
    makers: Numbers
    tensors: tuple[str, ...]
    operators: tuple[str, ...]
    shares: Mapping[str, int]
    times: Numbers
    loads: Numbers
    binding: int | None

    @classmethod
    def of(cls, source: Source, plan: Plan) -> Self:
        program, problem = source.program, source.problem
        facts = record_facts(source)
        names = {} if program is None else owners_of(program)
        tensors = [names.get(record.name, record.name) for record in problem.records]
        operators = [fact.label for fact in facts]
        drawn = list(problem.rectangles(plan.offsets))
        stairs = [len(record.stairs) for record in problem.records]
        times, loads = load_line(problem.records)
        binding = None if program is None else diagnose(program, problem).binding
        return cls(
            plan.height,
            problem.num_steps,
            _smallest(each.start for each in drawn),
            _smallest(each.end for each in drawn),
            _smallest(each.offset for each in drawn),
            _smallest(each.offset + each.size for each in drawn),
            np.repeat(_places(tensors), stairs),
            np.repeat(_places(operators), stairs),
            tuple(dict.fromkeys(tensors)),
            tuple(dict.fromkeys(operators)),
            shares(problem, operators, plan.height),
            _smallest(times),
            _smallest(loads),
            None if binding is None else binding.step,
        )

    @property
    def num_bytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (
            self.starts, self.ends, self.bottoms, self.tops, self.owners, self.makers, self.times,
            self.loads,
        )  # fmt: skip
        return sum(array.nbytes for array in arrays)


def shares(problem: Problem, names: Sequence[str], height: int) -> Counter[str]:
    """Return how much of a map is of each name, in millionths.

    Args:
        names: One for each record.
        height: Bytes that the map shows.
    """
    area = max(1, height) * max(1, problem.num_steps)
    found: Counter[str] = Counter()
    for record, name in zip(problem.records, names, strict=True):
        taken = sum(stair.size * (stair.end - stair.start) for stair in record.stairs)
        found[name] += _PARTS * taken // area
    return found


def load_line(records: Iterable[UsageRecord]) -> tuple[list[int], list[int]]:
    """Return the corners of the line of live bytes: steps, and bytes."""
    times, loads = [0], [0]
    for span in load_spans(records):
        if span.start > times[-1]:
            times.append(times[-1])
            loads.append(0)
        times += [span.start, span.end]
        loads += [span.load, span.load]
    return times, loads


def _places(names: Sequence[str]) -> Numbers:
    """Return for each name its place among those that differ."""
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return _smallest(places[name] for name in names)


def _smallest(numbers: Iterable[int]) -> Numbers:
    """Return numbers in the narrowest type that pages know and that holds them."""
    found = np.array(list(numbers), np.int64)
    most = found.max(initial=0)
    for kind in (np.uint8, np.uint16, np.int32):
        if most <= np.iinfo(kind).max:
            return found.astype(kind)
    return found.astype(np.float64)
