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
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from arenite.pipeline.base.observing import SearchLimits
from arenite.pipeline.base.placing import Outcome, place
from arenite.planner import Plan, Problem, Program, Strategy, UsageRecord
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
    blocks = list(_blocks(strategy, program, problem, limits))
    if not blocks:
        return place(strategy, problem, limits)
    names = Names(record.name for record in problem.records)
    inside = {number for block in blocks for number in block.records}
    outside = [number for number in range(len(problem.records)) if number not in inside]
    records = _among(problem, outside)

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


def _blocks(
    strategy: Strategy, program: Program, problem: Problem, limits: SearchLimits
) -> Iterator[_Block]:
    assert program.system is not None
    steps: dict[str, range] = {}
    begun = 0
    for stage in program.system.stages:
        steps[stage.name] = range(begun, begun + stage.num_steps)
        begun += stage.num_steps
    for section in program.system.schedule.sections():
        if section.kind is not SectionKind.AT_ONCE:
            continue
        parts: list[_Block] = []
        whole = _covered([steps[name] for name in section.stages()])
        for part in section.parts:
            names = (part,) if isinstance(part, str) else part.stages()
            own = _covered([steps[name] for name in names])
            among = [
                number
                for number, record in enumerate(problem.records)
                if own.start <= record.start and record.end <= own.stop
            ]
            some = replace(problem, records=tuple(_among(problem, among)))
            parts.append(_Block(among, place(strategy, some, limits), whole))
        parts.remove(max(parts, key=lambda part: part.outcome.plan.height))
        yield from (part for part in parts if part.records)


def _among(problem: Problem, numbers: Sequence[int]) -> list[UsageRecord]:
    """Return some of the records; they overlap none but each other."""
    names = {problem.records[number].name for number in numbers}
    return [
        replace(record, overlaps=tuple(each for each in record.overlaps if each.record in names))
        for record in (problem.records[number] for number in numbers)
    ]


def _covered(ranges: Sequence[range]) -> range:
    return range(ranges[0].start, ranges[-1].stop)
