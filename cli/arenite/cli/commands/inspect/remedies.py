"""What each rewrite would bring, found by trying it, and what would be left."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.cli.options.shared import Reading
from arenite.cli.targets.table import GENERIC
from arenite.planner.diagnosis import diagnose
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.liveness import DEFAULT_ALIGNMENT
from arenite.planner.rewrites.aliasing import SAFE_KINDS, Aliasing, AliasKind, explain
from arenite.planner.source import Source


@dataclass(frozen=True, slots=True)
class Remedy:
    """Options that lower the bound.

    Attributes:
        options: As on the command line.
        lower_bound: Bytes any plan needs with them.
        advice: What binds then, and what could lower it further.
    """

    options: str
    lower_bound: int
    advice: str


def remedies(
    reading: Reading, model: Path, source: Source, sharing: Aliasing | None
) -> Iterator[Remedy]:
    """Yield the rewrites that lower the bound of `source`, the simplest first.

    The kinds of sharing are added one by one, those alone that find something to share. A
    combination is left out where a simpler one does as well.

    Args:
        reading: How `source` was read.
        model: Its file.
        source: What is to be lowered.
        sharing: What could share storage in it; None if that is not open.
    """
    lowest = source.problem.lower_bound
    tried = [(reading.aliases, "best", "--order best")]
    if sharing is not None:
        finding = [kind for kind in AliasKind if sharing.num_shared.get(kind)]
        some = [tuple(finding[: count + 1]) for count in range(len(finding) - 1)]
        tried = [
            *((kinds, reading.order_name, f"--alias {','.join(kinds)}") for kinds in some),
            (SAFE_KINDS, reading.order_name, "--alias all"),
            *tried,
            (SAFE_KINDS, "best", "--alias all --order best"),
        ]
    for aliases, order_name, options in tried:
        other = replace(reading, aliases=aliases, order_name=order_name)
        if other == reading:
            continue
        try:
            found = other.read(model)
        except UnsupportedModelError:  # its operators cannot be reordered
            continue
        if found.graph is not None and found.problem.lower_bound < lowest:
            lowest = found.problem.lower_bound
            yield Remedy(options, lowest, diagnose(found.graph, found.problem).advice)


def sharing(reading: Reading, model: Path, source: Source) -> Aliasing | None:
    """Return all that could share storage, and what is against the rest.

    None where that is not open: for records alone, and where the target decides it.

    Args:
        reading: How `source` was read.
        model: Its file.
        source: As it was read; its own order counts.
    """
    if reading.target not in (None, GENERIC):
        return None
    plain = source if not reading.aliases else replace(reading, aliases=()).read(model)
    if plain.graph is None:
        return None
    alignment = reading.alignment or DEFAULT_ALIGNMENT
    return explain(plain.graph, SAFE_KINDS, reading.boundary, alignment)
