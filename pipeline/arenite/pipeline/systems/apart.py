"""Placement of models that run at the same time.

On the line of steps they stand one after another, so lifetimes alone would let them share bytes.
Of the parts of a section all but one are placed on their own, each in a block that lives for the
whole section. The one that takes most stays on the line::

    bytes
      ^   |  block of b  |
      |   |~~~|    |~~|  |      records of a
      |   |~~~~~~~~~|~~~~|
      +---|-- a ----| b  |----> steps

That gives nothing away: the bytes that a part takes in any plan, pushed together, are a plan of
it alone.

States live on and stay on the line. Bytes beside them that a part needs at some of its steps, such
as those of the new rows of a stream, are needed for the whole section.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from arenite.pipeline.base.observing import SearchLimits
from arenite.pipeline.base.placing import Outcome, place
from arenite.planner import Plan, Problem, Program, Stair, Strategy, UsageRecord
from arenite.planner.programs import Names, SectionKind


@dataclass(frozen=True, slots=True)
class _Block:
    """A part of a section, placed on its own.

    Attributes:
        records: Numbers of its records, those that live nowhere else.
        outcome: Their plan.
        section: The steps of the section.
    """

    records: Sequence[int]
    outcome: Outcome
    section: range


@dataclass(frozen=True, slots=True)
class _Section:
    """A section whose parts run at the same time.

    Attributes:
        steps: Its steps.
        parts: Those of each part, one part after another.
    """

    steps: range
    parts: Sequence[range]


def place_apart(
    strategy: Strategy, program: Program, problem: Problem, limits: SearchLimits
) -> Outcome:
    """Return the plan of a system, the models that run at once apart.

    Args:
        program: A program of several models.
        problem: Its records, in one memory.

    Raises:
        PlanError: A strategy made no plan.
    """
    sections = list(_sections(program))
    if not sections:
        return place(strategy, problem, limits)
    held = replace(problem, records=tuple(_held(record, sections) for record in problem.records))
    blocks = [block for each in sections for block in _blocks(strategy, each, held, limits)]
    names = Names(record.name for record in problem.records)
    inside = {number for block in blocks for number in block.records}
    outside = [number for number in range(len(problem.records)) if number not in inside]
    records = _among(held, outside)

    def with_blocks(sizes: Sequence[int]) -> Problem:
        made = [
            UsageRecord(
                name, size, block.section.start, block.section.stop,
                max(problem.records[number].alignment for number in block.records),
            )
            for name, size, block in zip(block_names, sizes, blocks, strict=True)
            if size
        ]  # fmt: skip
        return replace(problem, records=(*records, *made))

    block_names = [names.take(f"at once from step {block.section.start}") for block in blocks]
    whole = with_blocks([block.outcome.plan.height for block in blocks])
    outcome = place(strategy, whole, limits)
    offsets = [0] * len(problem.records)
    for number, offset in zip(outside, outcome.plan.offsets, strict=False):
        offsets[number] = offset
    for block, base in zip(blocks, outcome.plan.offsets[len(outside) :], strict=True):
        for number, offset in zip(block.records, block.outcome.plan.offsets, strict=True):
            offsets[number] = base + offset
    least = with_blocks([block.outcome.plan.lower_bound for block in blocks]).lower_bound
    if all(block.outcome.plan.optimal for block in blocks):
        least = max(least, outcome.plan.lower_bound)
    plan = Plan.of(
        problem, tuple(offsets), outcome.plan.strategy, outcome.plan.parameters, lower_bound=least
    )
    parts = [outcome, *(block.outcome for block in blocks)]
    return Outcome(
        plan, sum(part.seconds for part in parts), any(part.interrupted for part in parts)
    )


def _sections(program: Program) -> Iterator[_Section]:
    """Yield the sections whose parts run at the same time."""
    assert program.system is not None
    steps: dict[str, range] = {}
    begun = 0
    for stage in program.system.stages:
        steps[stage.name] = range(begun, begun + stage.num_steps)
        begun += stage.num_steps
    for section in program.system.schedule.sections():
        if section.kind is SectionKind.AT_ONCE:
            named = [(part,) if isinstance(part, str) else part.stages() for part in section.parts]
            parts = tuple(_covered([steps[name] for name in names]) for names in named)
            yield _Section(_covered(parts), parts)


def _held(record: UsageRecord, sections: Sequence[_Section]) -> UsageRecord:
    """Return a record that needs for whole sections what it needs at some of their steps.

    Itself where it lives in one part, whose other records are placed with it.
    """
    whole = [
        each.steps for each in sections if not any(_is_within(record, part) for part in each.parts)
    ]
    if not record.outline or not whole:
        return record
    cuts = sorted({byte for each in record.outline for byte in (each.offset, _stop(each))})
    stairs: list[Stair] = []
    for first, last in pairwise(cuts):
        times = [
            range(each.start, each.end)
            for each in record.outline
            if each.offset <= first and last <= _stop(each)
        ]
        for steps in whole:
            if any(time.start < steps.stop and steps.start < time.stop for time in times):
                within = range(max(record.start, steps.start), min(record.end, steps.stop))
                times.append(within)
        stairs += (Stair(first, last - first, each.start, each.stop) for each in _union(times))
    return replace(record, outline=tuple(stairs))


def _union(times: Sequence[range]) -> list[range]:
    found: list[range] = []
    for each in sorted(times, key=lambda time: time.start):
        if found and each.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, each.stop))
        else:
            found.append(each)
    return found


def _blocks(
    strategy: Strategy, section: _Section, problem: Problem, limits: SearchLimits
) -> Iterator[_Block]:
    blocks: list[_Block] = []
    for part in section.parts:
        among = [
            number for number, record in enumerate(problem.records) if _is_within(record, part)
        ]
        some = replace(problem, records=tuple(_among(problem, among)))
        blocks.append(_Block(among, place(strategy, some, limits), section.steps))
    blocks.remove(max(blocks, key=lambda block: block.outcome.plan.height))
    yield from (block for block in blocks if block.records)


def _among(problem: Problem, numbers: Sequence[int]) -> list[UsageRecord]:
    """Return some of the records; they overlap none but each other."""
    names = {problem.records[number].name for number in numbers}
    return [
        replace(record, overlaps=tuple(each for each in record.overlaps if each.record in names))
        for record in (problem.records[number] for number in numbers)
    ]


def _covered(ranges: Sequence[range]) -> range:
    return range(ranges[0].start, ranges[-1].stop)


def _is_within(record: UsageRecord, steps: range) -> bool:
    return steps.start <= record.start and record.end <= steps.stop


def _stop(stair: Stair) -> int:
    return stair.offset + stair.size
