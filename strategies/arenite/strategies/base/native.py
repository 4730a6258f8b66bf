"""Access to the native core: no other module imports it.

A checkout that is not installed has no native core. Code that has a twin in Python works
without it; other code raises an error that names the missing package.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from arenite.planner import Problem
from arenite.planner.errors import MissingDependencyError, SizeLimitError

if TYPE_CHECKING:
    from arenite.strategies import _core as core
else:
    try:
        from arenite.strategies import _core as core
    except ImportError:
        core = None

__all__ = [
    "check_sizes", "core", "fits", "is_built", "outlines_of", "records_of", "require",
    "size_fault", "why_unsizable", "why_unsupported",
]  # fmt: skip

_LIMIT = 1 << 62


def is_built() -> bool:
    """Tell whether there is a native core."""
    return core is not None


def require(purpose: str) -> None:
    """Check that there is a native core.

    Args:
        purpose: The feature that needs it.

    Raises:
        MissingDependencyError: There is none.
    """
    if not is_built():
        raise MissingDependencyError("arenite.strategies._core", "all", purpose)


def size_fault(problem: Problem) -> SizeLimitError | None:
    """Return the error for numbers beyond the core's 64 bits, None if there are none."""
    records = problem.records
    for record in records:
        if record.end >= _LIMIT:
            what = f"record {record.name!r} ends at step {record.end}"
            return SizeLimitError(what, record.name, record.end, _LIMIT)
    # An offset is at most the highest fixed one and all sizes, each aligned.
    highest = max((record.offset for record in records if record.offset is not None), default=0)
    besides = highest + sum(record.alignment for record in records)
    return _fault("record", [(record.name, record.size) for record in records], besides)


def why_unsizable(problem: Problem) -> str | None:
    """Return None, or the number beyond the core's 64 bits, as a strategy's reason."""
    fault = size_fault(problem)
    return None if fault is None else f"sum of the sizes is too large: {fault}"


def why_unsupported(problem: Problem) -> str | None:
    """Return None, or why a search that only the core has cannot handle the problem."""
    return why_unsizable(problem) if is_built() else "needs the native core, which was not built"


def fits(problem: Problem) -> bool:
    """Tell whether no offset and no step can exceed the core's 64 bits."""
    return size_fault(problem) is None


def check_sizes(kind: str, sizes: Iterable[tuple[str, int]]) -> None:
    """Return if no sum of these sizes exceeds the core's 64 bits.

    Args:
        kind: Kind of object, such as "tensor".

    Raises:
        SizeLimitError: One size or the sum of all is 2^62 B or more.
    """
    fault = _fault(kind, list(sizes), 0)
    if fault is not None:
        raise fault


def _fault(kind: str, sizes: list[tuple[str, int]], besides: int) -> SizeLimitError | None:
    total = besides + sum(size for _, size in sizes)
    if total < _LIMIT:
        return None
    name, largest = max(sizes, key=lambda item: item[1])
    what = f"{kind} {name!r} takes {largest} B"
    if largest < _LIMIT:
        what += f", the most of {len(sizes)} that add up to {total} B with their offsets"
    return SizeLimitError(what, name, largest, _LIMIT)


def records_of(problem: Problem) -> "core.Records":
    """Convert a problem's records for the core.

    Raises:
        SizeLimitError: The problem does not fit.
    """
    fault = size_fault(problem)
    if fault is not None:
        raise fault
    records = problem.records
    return core.Records(
        [record.start for record in records],
        [record.end for record in records],
        [record.size for record in records],
        [record.alignment for record in records],
        [-1 if record.offset is None else record.offset for record in records],
    )


def outlines_of(problem: Problem) -> list[list[int]]:
    """Convert the outlines of a problem's records for the core: four numbers a stair."""
    return [
        [
            number
            for stair in record.outline
            for number in (stair.offset, stair.size, stair.start, stair.end)
        ]
        for record in problem.records
    ]
