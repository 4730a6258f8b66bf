"""Plans for a range of sizes: what they take at single sizes of it.

A range has one plan; a program in bands of rows may have others for its lower sizes. The height
is the lowest of the highest sizes, and a process that has run at these keeps their pages. In the
middle of a range one plan touches at most twice the pages of a plan for that size alone (`bench
run touched-pages`). Of storage with parts at places that depend on sizes all pages count, so what
is stated is an upper bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from arenite.planner import Plan, Problem
from arenite.planner.errors import SizeError
from arenite.planner.placement import size_at
from arenite.planner.sizes import Dimension, Sizes, highest_sizes, require_inside

_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Touched:
    """Bytes of an arena that are in use at some sizes.

    Attributes:
        sizes: Values of the dimensions.
        size: Bytes below which all records lie, summed over the memories.
        resident: Bytes of the pages of 4 KiB among them that hold bytes of a record; others
            take no memory of a system that maps pages when they are first written.
    """

    sizes: Sizes
    size: int
    resident: int

    @classmethod
    def of(cls, problem: Problem, plan: Plan, sizes: Sizes) -> "Touched":
        """Return the bytes that a plan uses where the dimensions have these values."""
        tops = {memory.name: 0 for memory in problem.memories}
        stretches: list[tuple[str, int, int]] = []
        for record, offset in zip(problem.records, plan.offsets, strict=True):
            size = size_at(record, sizes)
            if size:
                tops[record.memory] = max(tops[record.memory], offset + size)
                last = (offset + size - 1) // _PAGE
                stretches.append((record.memory, offset // _PAGE, last + 1))
        num_pages, at = 0, ("", 0)
        for memory, first, end in sorted(stretches):
            begin = max(first, at[1]) if memory == at[0] else first
            num_pages += max(0, end - begin)
            at = memory, max(end, at[1] if memory == at[0] else 0)
        return cls(sizes, sum(tops.values()), num_pages * _PAGE)

    def as_json(self) -> dict[str, object]:
        """Return it as its part of `--json`."""
        return {"sizes": dict(self.sizes), "bytes": self.size, "resident": self.resident}


def problem_at(problem: Problem, sizes: Sizes) -> Problem:
    """Return the records of a problem where the dimensions have these values."""
    records = []
    for record in problem.records:
        size = size_at(record, sizes)
        if size:
            # A layout and an outline are those at the highest sizes.
            varies = record.expression is not None
            records.append(
                replace(
                    record, size=size, expression=None,
                    layout=() if varies else record.layout,
                    outline=() if varies else record.outline,
                )
            )  # fmt: skip
    return replace(problem, records=tuple(records))


def along(dimensions: Sequence[Dimension], count: int) -> list[dict[str, int]]:
    """Return values from the lowest sizes to the highest, all dimensions growing together.

    Args:
        count: At least 2; fewer are returned where the ranges have fewer values.
    """
    found: list[dict[str, int]] = []
    for index in range(count):
        point = {
            each.name: each.low + (len(each) - 1) * index // (count - 1) * each.step
            for each in dimensions
        }
        if point not in found:
            found.append(point)
    return found


def completed(sizes: Sizes, dimensions: Sequence[Dimension]) -> dict[str, int]:
    """Return a value for each dimension: the stated one, else the highest.

    Raises:
        SizeError: A dimension is unknown, or a value is outside its range.
    """
    known = {each.name for each in dimensions}
    for name in sizes:
        if name not in known:
            ranges = ", ".join(map(str, dimensions)) or "none"
            raise SizeError(f"{name!r} is not a dimension with a range; known: {ranges}")
    found = {**highest_sizes(dimensions), **sizes}
    require_inside(found, dimensions)
    return found


def sizes_text(sizes: Sizes) -> str:
    """Return values of dimensions in a few words, such as `seq=17, past=3`."""
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def touched_along(problem: Problem, plan: Plan, dimensions: Sequence[Dimension]) -> list[Touched]:
    """Return what a plan touches at the lowest sizes and in the middle; empty without a range."""
    if not dimensions:
        return []
    return [Touched.of(problem, plan, sizes) for sizes in along(dimensions, 3)[:-1]]


def dimensions_as_json(dimensions: Sequence[Dimension]) -> list[Mapping[str, object]]:
    """Return the dimensions with their ranges."""
    return [
        {"name": each.name, "low": each.low, "high": each.high, "step": each.step}
        for each in dimensions
    ]
