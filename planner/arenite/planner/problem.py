"""What must be placed: usage records, their load over the steps, the bounds they imply.

Lifetimes are **half-open**, `[start, end)`, in steps. A source that states closed
intervals is converted where it is read, and nowhere else.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from arenite.planner.errors import ModelError
from arenite.planner.units import align_up


@dataclass(frozen=True, slots=True)
class PermittedOverlap:
    """Leave for a record's end to lie over the beginning of another.

    An operator that reads ahead of what it writes may let its result reach into its operand
    from below. At the one step that both are live, the result's last bytes and the operand's
    first may be the same, `size` of them at most::

        result   |~~~~~~~~~~~~~~|
        operand            |~~~~~~~~~~~~|
                           |-size-|

    Attributes:
        record: Name of the operand: it dies at the step that brings forth the result.
        size: Bytes, at least 1 and less than either record has.
    """

    record: str
    size: int


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
        offset: Where it must lie, if that is already decided.
        layout: Bits of an element, then the shape; () when unknown. Read only by
            strategies that reuse a buffer for an equal shape alone.
        overlaps: What its end may lie over. A strategy need not make use of it.
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

    @property
    def lifetime(self) -> int:
        """Steps it lives."""
        return self.end - self.start

    def meets(self, other: "UsageRecord") -> bool:
        """Tell whether both are live at some step."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class LoadSpan:
    """Neighbouring steps with the same records live.

    Attributes:
        start: First step.
        end: First step after.
        load: Bytes live.
        bound: Bytes that any plan needs for these steps; above `load` where alignment
            leaves gaps that nothing can fill, below it where records may overlap.
    """

    start: int
    end: int
    load: int
    bound: int


@dataclass(frozen=True, slots=True)
class Problem:
    """The records to place in one arena.

    Attributes:
        records: In a fixed order; every plan gives its offsets in the same order.
        steps: Names of the operators by step; () when there is no graph.
        capacity: Bytes the arena may have at most; None for no limit.

    Raises:
        ModelError: Two records share a name, or one may overlap what it cannot.
    """

    records: tuple[UsageRecord, ...]
    steps: tuple[str, ...] = ()
    capacity: int | None = None

    def __post_init__(self) -> None:
        by_name: dict[str, UsageRecord] = {}
        for record in self.records:
            if record.name in by_name:
                raise ModelError(f"two records are named {record.name!r}")
            by_name[record.name] = record
        for record in self.records:
            if record.overlaps:
                _check_overlaps(record, by_name)

    @property
    def num_steps(self) -> int:
        """Steps from 0 to the last at which anything lives, or to the last operator."""
        return max(len(self.steps), max((record.end for record in self.records), default=0))

    @property
    def naive(self) -> int:
        """Bytes if no storage were ever reused: the sum of all sizes."""
        return sum(record.size for record in self.records)

    @property
    def lower_bound(self) -> int:
        """Bytes that every plan needs: the largest bound over the steps."""
        return max((span.bound for span in load_spans(self.records)), default=0)


def _check_overlaps(record: UsageRecord, by_name: Mapping[str, UsageRecord]) -> None:
    named = [overlap.record for overlap in record.overlaps]
    for overlap in record.overlaps:
        other = by_name.get(overlap.record)
        if other is None or other is record or named.count(overlap.record) > 1:
            raise ModelError(
                f"record {record.name!r} may overlap {overlap.record!r}, one other record expected"
            )
        if other.end != record.start + 1 or not other.start <= record.start:
            raise ModelError(
                f"record {record.name!r} may overlap {other.name!r}, which does not end at step "
                f"{record.start} where it begins"
            )
        if not 1 <= overlap.size < min(record.size, other.size):
            raise ModelError(
                f"record {record.name!r} may overlap {other.name!r} by {overlap.size} B, at least "
                f"1 B and less than {min(record.size, other.size)} B expected"
            )


def load_spans(records: Iterable[UsageRecord]) -> Iterator[LoadSpan]:
    """Yield the load over the steps, gaps without any record left out.

    Where every record live at a step has an alignment of at least `a`, all offsets are
    multiples of `a`, so every record but the topmost takes its size rounded up to `a`.
    The bound is the sum of the rounded sizes less the largest rounding. Where records may
    overlap, it is the load less all that any two of them may share.

    Cost: time O(n log n), memory O(n); with sizes that are not multiples of their
    alignment, time O(sum over the spans of the records live there).
    """
    born: dict[int, list[UsageRecord]] = {}
    dead: dict[int, list[UsageRecord]] = {}
    unaligned = False
    for record in records:
        born.setdefault(record.start, []).append(record)
        dead.setdefault(record.end, []).append(record)
        unaligned = unaligned or record.size % record.alignment != 0
    live: dict[str, UsageRecord] = {}
    load = 0
    for time, following in pairwise(sorted(born.keys() | dead.keys())):
        for record in dead.get(time, ()):
            del live[record.name]
            load -= record.size
        for record in born.get(time, ()):
            live[record.name] = record
            load += record.size
        # What a record may overlap lives for the one step that it begins at.
        spared = sum(overlap.size for record in born.get(time, ()) for overlap in record.overlaps)
        if live:
            if spared:
                bound = max(load - spared, max(record.size for record in live.values()))
            else:
                bound = _aligned_bound(live.values()) if unaligned else load
            yield LoadSpan(time, following, load, bound)


def _aligned_bound(live: Iterable[UsageRecord]) -> int:
    records = tuple(live)
    alignment = min(record.alignment for record in records)
    rounded = [align_up(record.size, alignment) for record in records]
    slack = max(up - record.size for up, record in zip(rounded, records, strict=True))
    return sum(rounded) - slack
