"""Which kernels of a tuned program were taken, for people and as JSON."""

from arenite.pipeline.base.text import printable
from arenite.runtime.session import Tuned


def tuned_rows(tuned: Tuned | None) -> list[tuple[str, str]]:
    """Return a row of facts, none for a program that is tuned on no processor."""
    if tuned is None:
        return []
    taken = "this one" if tuned.is_here else "not this one: kernels are those of the table"
    return [("tuned on", f"{printable(tuned.processor)}, {taken}")]


def tuned_as_json(tuned: Tuned | None) -> dict[str, object] | None:
    """Return the processor and whether its kernels were taken."""
    return None if tuned is None else {"processor": tuned.processor, "taken": tuned.is_here}
