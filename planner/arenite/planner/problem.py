"""What must be placed: usage records, their load over the steps, the bounds they imply.

Lifetimes are **half-open**, `[start, end)`, in steps. A source that states closed
intervals is converted where it is read, and nowhere else.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from arenite.planner.errors import ModelError
from arenite.planner.units import align_up


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
    """

    name: str
    size: int
    start: int
    end: int
    alignment: int = 1
    tensors: tuple[str, ...] = ()
    offset: int | None = None
    layout: tuple[int, ...] = ()

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
            leaves gaps that nothing can fill.
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
        ModelError: Two records share a name.
    """

    records: tuple[UsageRecord, ...]
    steps: tuple[str, ...] = ()
    capacity: int | None = None

    def __post_init__(self) -> None:
        names: set[str] = set()
        for record in self.records:
            if record.name in names:
                raise ModelError(f"two records are named {record.name!r}")
            names.add(record.name)

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


def load_spans(records: Iterable[UsageRecord]) -> Iterator[LoadSpan]:
    """Yield the load over the steps, gaps without any record left out.

    Where every record live at a step has an alignment of at least `a`, all offsets are
    multiples of `a`, so every record but the topmost takes its size rounded up to `a`.
    The bound is the sum of the rounded sizes less the largest rounding.

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
        if live:
            bound = _aligned_bound(live.values()) if unaligned else load
            yield LoadSpan(time, following, load, bound)


def _aligned_bound(live: Iterable[UsageRecord]) -> int:
    records = tuple(live)
    alignment = min(record.alignment for record in records)
    rounded = [align_up(record.size, alignment) for record in records]
    slack = max(up - record.size for up, record in zip(rounded, records, strict=True))
    return sum(rounded) - slack
