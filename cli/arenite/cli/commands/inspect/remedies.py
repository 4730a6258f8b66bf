"""How far each rewrite would lower the bound, found by trying it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.pipeline.targets import GENERIC, Chosen, choose_target
from arenite.planner import DEFAULT_ALIGNMENT, AliasKind, diagnose, read
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.programs import SAFE_KINDS
from arenite.planner.rewrites import Aliasing, explain


@dataclass(frozen=True, slots=True)
class Remedy:
    """Options that lower the bound.

    Attributes:
        options: As on the command line.
        lower_bound: Bytes any plan needs with them.
        advice: The limit of the peak then, and what could lower it further.
    """

    options: str
    lower_bound: int
    advice: str


def remedies(chosen: Chosen, model: Path, sharing: Aliasing | None) -> Iterator[Remedy]:
    """Yield the options that lower the bound, the simplest first.

    The kinds of sharing are added one by one, those alone that find something to share. A
    combination is left out where a simpler one does as well.

    Args:
        sharing: Tensors that could share storage; None if the target decides that.
    """
    lowest = chosen.source.problem.lower_bound
    given, aliases = chosen.order_name, chosen.aliases
    tried = [(aliases, "best", "--order best")]
    if sharing is not None:
        finding = [kind for kind in AliasKind if sharing.num_shared.get(kind)]
        some = [tuple(finding[: count + 1]) for count in range(len(finding) - 1)]
        tried = [
            *((kinds, given, f"--alias {','.join(kinds)}") for kinds in some),
            (SAFE_KINDS, given, "--alias all"),
            *tried,
            (SAFE_KINDS, "best", "--alias all --order best"),
        ]
    for kinds, order_name, options in tried:
        if order_name == given and set(kinds) <= set(aliases):
            continue
        other = replace(
            chosen.reading,
            aliases=chosen.reading.aliases if kinds == aliases else kinds,
            order_name=order_name,
        )
        try:
            found = choose_target(other, model).source
        except UnsupportedModelError:  # its operators cannot be reordered
            continue
        if found.program is not None and found.problem.lower_bound < lowest:
            lowest = found.problem.lower_bound
            yield Remedy(options, lowest, diagnose(found.program, found.problem).advice)


def sharing(chosen: Chosen, model: Path) -> Aliasing | None:
    """Return the tensors that could share storage, and the reasons against the others.

    None where that is not open: for records alone, and where the target decides it.

    Args:
        chosen: How the model was read; its own order counts.
    """
    reading, source = chosen.reading, chosen.source
    if chosen.target is not GENERIC or source.program is None:
        return None
    plain = source
    if chosen.aliases:
        plain = read(
            model, dims=reading.dims, shapes=reading.shapes, values=reading.values,
            boundary=reading.boundary, alignment=reading.alignment,
            order=None if source.order is None else source.problem.steps,
        )  # fmt: skip
    if plain.program is None:
        return None
    alignment = reading.alignment or DEFAULT_ALIGNMENT
    return explain(plain.program, SAFE_KINDS, reading.boundary, alignment)
