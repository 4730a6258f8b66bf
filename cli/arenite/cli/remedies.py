"""What each rewrite would bring, found by trying it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.cli.options import Reading
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.rewrites.aliasing import AliasKind
from arenite.planner.source import Source


@dataclass(frozen=True, slots=True)
class Remedy:
    """Options that lower the bound.

    Attributes:
        options: As on the command line.
        lower_bound: Bytes any plan needs with them.
    """

    options: str
    lower_bound: int


def remedies(reading: Reading, model: Path, source: Source) -> Iterator[Remedy]:
    """Yield the rewrites that lower the bound of `source`, the simplest first.

    A combination is left out where a simpler one does as well.
    """
    lowest = source.problem.lower_bound
    everything = tuple(AliasKind)
    for aliases, order_name, options in (
        (everything, reading.order_name, "--alias all"),
        (reading.aliases, "best", "--order best"),
        (everything, "best", "--alias all --order best"),
    ):
        other = replace(reading, aliases=aliases, order_name=order_name)
        if other == reading:
            continue
        try:
            lower_bound = other.read(model).problem.lower_bound
        except UnsupportedModelError:  # its operators cannot be reordered
            continue
        if lower_bound < lowest:
            lowest = lower_bound
            yield Remedy(options, lower_bound)
