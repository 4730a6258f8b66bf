"""Access to the native core: no other module imports it.

A checkout that is not installed has no native core. Code that has a twin in Python works
without it; other code raises an error that names the missing package.
"""

from typing import TYPE_CHECKING

from arenite.planner.errors import MissingDependencyError
from arenite.planner.problem import Problem

if TYPE_CHECKING:
    from arenite.strategies import _core as core
else:
    try:
        from arenite.strategies import _core as core
    except ImportError:
        core = None

__all__ = ["core", "fits", "is_built", "records_of", "require"]

_MOST_BYTES = 1 << 62


def is_built() -> bool:
    """Tell whether there is a native core."""
    return core is not None


def require(purpose: str) -> None:
    """Check that there is a native core.

    Args:
        purpose: What needs it.

    Raises:
        MissingDependencyError: There is none.
    """
    if not is_built():
        raise MissingDependencyError("arenite.strategies._core", "all", purpose)


def fits(problem: Problem) -> bool:
    """Tell whether no offset and no step can exceed the core's 64 bits."""
    records = problem.records
    fixed = max((record.offset for record in records if record.offset is not None), default=0)
    reserved = sum(record.size + record.alignment for record in records)
    last_step = max((record.end for record in records), default=0)
    return fixed + reserved < _MOST_BYTES and last_step < _MOST_BYTES


def records_of(problem: Problem) -> "core.Records":
    """Convert a problem's records for the core.

    Args:
        problem: One that `fits`.
    """
    records = problem.records
    return core.Records(
        [record.start for record in records],
        [record.end for record in records],
        [record.size for record in records],
        [record.alignment for record in records],
        [-1 if record.offset is None else record.offset for record in records],
    )
