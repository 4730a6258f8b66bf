"""The placement problem: usage records, their load over the steps and the bounds it implies.

Lifetimes are **half-open**, `[start, end)`, in steps. A source that states closed
intervals is converted where it is read, and nowhere else.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

from arenite.planner.errors import ModelError
from arenite.planner.placement.outline import Stair, check_outline
from arenite.planner.sizes import Tree
from arenite.planner.tensors import ARENA, Memory


@dataclass(frozen=True, slots=True)
class PermittedOverlap:
    """Permission for the last bytes of a record to share storage with the first of another.

    An operator that reads its operand ahead of what it writes may write its result over the
    part already read. The result then starts below the operand and ends inside it. They
    share at most `size` bytes, at the one step where both are live::

        result   |~~~~~~~~~~~~~~|
        operand            |~~~~~~~~~~~~|
                           |-size-|

    Attributes:
        record: Name of the operand, whose last step is the result's first.
        size: Bytes, at least 1 and fewer than either record has.
    """

    record: str
    size: int


@dataclass(frozen=True, slots=True)
class MovingPart:
    """A tensor of a record whose place there depends on dimensions.

    Attributes:
        begin: Its first byte in the record, as an expression.
        stop: The byte after its last, not above `begin` where there is no tensor.
        start: First step at which it is in use.
        end: First step at which it no longer is.
    """

    tensor: str
    begin: Tree
    stop: Tree
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """One storage to place.

    Attributes:
        name: Unique in the problem.
        size: Bytes, at least 1.
        start: First step at which the bytes are in use.
        end: First step at which they no longer are, above `start`.
        alignment: The offset is a multiple of this power of two.
        tensors: Names of the tensors that lie in it.
        offset: Its offset, if that is fixed in advance.
        layout: Bits per element, then the shape; () when unknown. Only strategies that
            reuse a buffer solely for equal shapes look at it.
        overlaps: Records that its last bytes may share storage with. A strategy need not
            make use of it.
        memory: Name of the memory that it lies in.
        outline: Rectangles that move together, the only bytes and steps that it needs; () if
            it needs all of them. Bytes in none are free for others. A strategy need not
            make use of it.
        expression: How its bytes depend on dimensions; None if they do not. `size` is then that
            at the highest sizes, and at others the record takes its front part.
        parts: Tensors that lie at another place in it at each size.
    """

    name: str
    size: int
    start: int
    end: int
    alignment: int = 1
    tensors: tuple[str, ...] = ()
    offset: int | None = None
    layout: tuple[int, ...] = ()
    overlaps: tuple[PermittedOverlap, ...] = ()
    memory: str = ARENA
    outline: tuple[Stair, ...] = ()
    expression: Tree | None = None
    parts: tuple[MovingPart, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ModelError(f"record {self.name!r}: size {self.size} is not at least 1 B")
        if not 0 <= self.start < self.end:
            raise ModelError(f"record {self.name!r}: [{self.start}, {self.end}) is not a lifetime")
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise ModelError(
                f"record {self.name!r}: alignment {self.alignment} is not a power of two"
            )
        if self.offset is not None and (self.offset < 0 or self.offset % self.alignment):
            raise ModelError(
                f"record {self.name!r}: fixed offset {self.offset} is not a multiple of its "
                f"alignment {self.alignment}"
            )
        if self.outline:
            check_outline(self.name, self.outline, self.size, self.start, self.end)
            if self.overlaps:
                raise ModelError(
                    f"record {self.name!r} has both an outline and permitted overlaps"
                )

    @property
    def stairs(self) -> tuple[Stair, ...]:
        """The rectangles that it needs: its outline, or the whole."""
        return self.outline or (Stair(0, self.size, self.start, self.end),)

    @property
    def lifetime(self) -> int:
        """Number of steps for which it is live."""
        return self.end - self.start

    def meets(self, other: "UsageRecord") -> bool:
        """Tell whether both are live at some step."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Bytes of a memory that a record takes for some steps.

    Attributes:
        name: The record; one with an outline has several rectangles.
        memory: Name of the memory.
        offset: First byte.
        size: Bytes.
        start: First step.
        end: First step after it.
    """

    name: str
    memory: str
    offset: int
    size: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LoadSpan:
    """A run of consecutive steps with the same records live.

    Attributes:
        start: First step.
        end: First step after the run.
        load: Bytes live.
        bound: Bytes that any plan needs at these steps: more than `load` where alignment
            leaves gaps that cannot be filled, less where records may overlap.
    """

    start: int
    end: int
    load: int
    bound: int


@dataclass(frozen=True, slots=True)
class Problem:
    """The records to place, each in one of the memories.

    Attributes:
        records: In a fixed order; every plan gives its offsets in the same order.
        steps: Names of the operators by step; () when there is no graph.
        memories: Where the records may lie; by default one memory of unlimited capacity.

    Raises:
        ModelError: Two records or two memories share a name, a record names an unknown
            memory or is aligned to less than its memory, or a permitted overlap is impossible.
    """

    records: tuple[UsageRecord, ...]
    steps: tuple[str, ...] = ()
    memories: tuple[Memory, ...] = (Memory(),)
    # Cache of `lower_bounds`: every plan needs them, and a search makes many plans.
    _bounds: list[tuple[int, ...]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        memories = {memory.name: memory for memory in self.memories}
        if len(memories) < len(self.memories) or not memories:
            names = [memory.name for memory in self.memories]
            raise ModelError(f"the memories are {names}; at least one, each of its own name")
        by_name: dict[str, UsageRecord] = {}
        for record in self.records:
            if record.name in by_name:
                raise ModelError(f"two records are named {record.name!r}")
            by_name[record.name] = record
            _check_memory(record, memories)
        for record in self.records:
            if record.overlaps:
                _check_overlaps(record, by_name)

    @classmethod
    def of(
        cls,
        records: Iterable[UsageRecord],
        steps: tuple[str, ...] = (),
        *,
        capacity: int | None = None,
    ) -> Self:
        """Return the problem of placing records in one memory."""
        return cls(tuple(records), steps, (Memory(capacity=capacity),))

    def with_capacity(self, capacity: int | None) -> Self:
        """Return the problem with another capacity.

        Args:
            capacity: Bytes of the only memory; None lifts the limit of every memory.

        Raises:
            ValueError: A number is given for several memories.
        """
        if capacity is not None and len(self.memories) > 1:
            raise ValueError(f"one capacity given for {len(self.memories)} memories")
        memories = tuple(replace(memory, capacity=capacity) for memory in self.memories)
        return replace(self, memories=memories)

    @property
    def capacity(self) -> int | None:
        """Bytes there may be at most, over all memories; None if one has no limit."""
        capacities = [memory.capacity for memory in self.memories if memory.capacity is not None]
        return sum(capacities) if len(capacities) == len(self.memories) else None

    @property
    def num_steps(self) -> int:
        """Number of steps up to the last operator or the last live record."""
        return max(len(self.steps), max((record.end for record in self.records), default=0))

    @property
    def naive(self) -> int:
        """Bytes needed without any reuse: the sum of all sizes."""
        return sum(record.size for record in self.records)

    @property
    def lower_bounds(self) -> tuple[int, ...]:
        """Bytes that every plan needs of each memory: the largest bound over the steps."""
        if not self._bounds:
            self._bounds.append(tuple(map(_lower_bound, self._records_by_memory())))
        return self._bounds[0]

    @property
    def lower_bound(self) -> int:
        """Bytes that every plan needs, over all memories."""
        return sum(self.lower_bounds)

    @property
    def has_outlines(self) -> bool:
        """Whether some record leaves bytes of its rectangle to others."""
        return any(record.outline for record in self.records)

    def hulls(self) -> "Problem":
        """Return the problem in which every record needs its whole rectangle.

        A plan of it is a plan of this problem, if seldom a low one; its bound is no bound here.
        """
        if not self.has_outlines:
            return self
        records = tuple(replace(record, outline=()) for record in self.records)
        return replace(self, records=records)

    def rectangles(self, offsets: Sequence[int]) -> Iterator[Rectangle]:
        """Yield the rectangles of the records in a plan: one each, or one for each stair.

        Args:
            offsets: One for each record, as the plan gives them.
        """
        for record, offset in zip(self.records, offsets, strict=True):
            for stair in record.stairs:
                yield Rectangle(
                    record.name, record.memory, offset + stair.offset, stair.size, stair.start,
                    stair.end,
                )  # fmt: skip

    def by_memory(self) -> "tuple[Problem, ...]":
        """Return one problem per memory: its own records, and all the steps."""
        if len(self.memories) == 1:
            return (self,)
        return tuple(
            Problem(records, self.steps, (memory,))
            for memory, records in zip(self.memories, self._records_by_memory(), strict=True)
        )

    def _records_by_memory(self) -> Iterable[tuple[UsageRecord, ...]]:
        if len(self.memories) == 1:
            return (self.records,)
        found: dict[str, list[UsageRecord]] = {memory.name: [] for memory in self.memories}
        for record in self.records:
            found[record.memory].append(record)
        return map(tuple, found.values())


def _check_memory(record: UsageRecord, memories: Mapping[str, Memory]) -> None:
    memory = memories.get(record.memory)
    if memory is None:
        raise ModelError(
            f"record {record.name!r} lies in memory {record.memory!r}, one of "
            f"{', '.join(map(repr, memories))} expected"
        )
    if record.alignment < memory.alignment:
        raise ModelError(
            f"record {record.name!r} is aligned to {record.alignment}, memory {memory.name!r} "
            f"to {memory.alignment}"
        )


def _check_overlaps(record: UsageRecord, by_name: Mapping[str, UsageRecord]) -> None:
    named = [overlap.record for overlap in record.overlaps]
    for overlap in record.overlaps:
        other = by_name.get(overlap.record)
        if other is None or other is record or named.count(overlap.record) > 1:
            raise ModelError(
                f"record {record.name!r} may overlap {overlap.record!r}, one other record expected"
            )
        if other.memory != record.memory:
            raise ModelError(
                f"record {record.name!r} may overlap {other.name!r}, which lies in memory "
                f"{other.memory!r}, not in {record.memory!r}"
            )
        if other.end != record.start + 1 or not other.start <= record.start:
            raise ModelError(
                f"record {record.name!r} may overlap {other.name!r}, which does not end at step "
                f"{record.start} where it begins"
            )
        if other.outline:
            raise ModelError(
                f"record {record.name!r} may overlap {other.name!r}, which has an outline"
            )
        if not 1 <= overlap.size < min(record.size, other.size):
            raise ModelError(
                f"record {record.name!r} may overlap {other.name!r} by {overlap.size} B, at least "
                f"1 B and less than {min(record.size, other.size)} B expected"
            )


def _lower_bound(records: Sequence[UsageRecord]) -> int:
    """Return the largest bound over the steps, or the largest record that has an outline."""
    whole = max((record.size for record in records if record.outline), default=0)
    return max(whole, max((span.bound for span in load_spans(records)), default=0))


@dataclass(frozen=True, slots=True, eq=False)
class _Live:
    """Bytes that a record needs for some steps; compared by identity."""

    size: int
    alignment: int
    start: int
    end: int
    spared: int = 0


def _pieces(record: UsageRecord) -> Iterator[_Live]:
    """Yield the rectangles of a record, each with the alignment that its first byte has."""
    if not record.outline:
        # A record is live with the records that it may overlap at its first step only.
        spared = sum(overlap.size for overlap in record.overlaps)
        yield _Live(record.size, record.alignment, record.start, record.end, spared)
    for stair in record.outline:
        alignment = math.gcd(record.alignment, stair.offset)
        yield _Live(stair.size, alignment, stair.start, stair.end)


def load_spans(records: Iterable[UsageRecord]) -> Iterator[LoadSpan]:
    """Yield the load over the steps, skipping steps at which nothing is live.

    The records must share one memory; `Problem.by_memory` separates those of several. Of a
    record with an outline only the stairs count.

    Where everything live at a step has an alignment of at least `a`, all offsets are
    multiples of `a`, so all but the topmost takes its size rounded up to `a`.
    The bound is the sum of the rounded sizes less the largest rounding. Where records may
    overlap, it is the load less all that any two of them may share.

    Cost: time O(n log n), memory O(n), n counting the stairs; with sizes that are not
    multiples of their alignment, time O(sum over the spans of what is live there).
    """
    records = list(records)
    if all(_is_plain(record) for record in records):
        yield from _plain_spans(records)
        return
    born: dict[int, list[_Live]] = {}
    dead: dict[int, list[_Live]] = {}
    unaligned = False
    for piece in (piece for record in records for piece in _pieces(record)):
        born.setdefault(piece.start, []).append(piece)
        dead.setdefault(piece.end, []).append(piece)
        unaligned = unaligned or piece.size % piece.alignment != 0
    live: dict[_Live, None] = {}
    load = 0
    for time, following in pairwise(sorted(born.keys() | dead.keys())):
        for piece in dead.get(time, ()):
            del live[piece]
            load -= piece.size
        for piece in born.get(time, ()):
            live[piece] = None
            load += piece.size
        spared = sum(piece.spared for piece in born.get(time, ()))
        if live:
            if spared:
                bound = max(load - spared, max(piece.size for piece in live))
            else:
                bound = _aligned_bound(live, load) if unaligned else load
            yield LoadSpan(time, following, load, bound)


def _is_plain(record: UsageRecord) -> bool:
    """Tell whether all that a record adds to the bound of its steps is its size."""
    return not (record.outline or record.overlaps or record.size % record.alignment)


def _plain_spans(records: Iterable[UsageRecord]) -> Iterator[LoadSpan]:
    changes: defaultdict[int, int] = defaultdict(int)
    for record in records:
        changes[record.start] += record.size
        changes[record.end] -= record.size
    load = 0
    for time, following in pairwise(sorted(changes)):
        load += changes[time]
        if load:
            yield LoadSpan(time, following, load, load)


def _aligned_bound(live: Mapping[_Live, None], load: int) -> int:
    alignment = min(piece.alignment for piece in live)
    roundings = [-piece.size % alignment for piece in live]
    return load + sum(roundings) - max(roundings)
