"""Checks that C source for a range of sizes states what source for one of them alone does."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from arenite.planner import Array, Program
from arenite.planner.sizes import Sizes
from arenite.runtime.cexport.base.errors import NotExportedError, NotWrittenError
from arenite.runtime.cexport.base.layout import ArenaLayout, FlashConstants
from arenite.runtime.cexport.base.ranges import has_trivial_lengths, points, program_at, text_at
from arenite.runtime.cexport.steps.writer import CFileParts, StepWriter, writers


@dataclass(slots=True)
class _Recorded(FlashConstants):
    """Constants in the order in which a step asks for them, each with a name of its own."""

    found: list[Array] = field(default_factory=list)

    def add(self, array: Array, hint: str) -> str:
        self.found.append(array)
        return f"{hint}_{len(self.found)}"


_Written: TypeAlias = tuple[str, list[Array]]
"""Everything that is written of a step, and its constants."""


def check_sizes(layout: ArenaLayout, written: CFileParts) -> None:
    """Check every step at several sizes.

    What depends on sizes is a length in the program. A writer that loses an expression, or decides
    by the highest sizes alone, writes other text for the program at another size.

    Args:
        layout: Where tensors lie; sizes are symbols.
        written: The file.

    Raises:
        NotExportedError: Steps differ; all of them are named.
    """
    ranged = _written(layout, written, layout.program)
    refused: dict[str, tuple[str, str, str]] = {}
    for sizes in points(layout.program.dimensions):
        stated = ", ".join(f"{name}={value}" for name, value in sizes.items())
        fixed = _written(layout, written, program_at(layout.program, sizes))
        for step, one, other in zip(layout.program.steps, ranged, fixed, strict=True):
            if step.name in refused or has_trivial_lengths(layout.program, step, sizes):
                continue
            why = one if isinstance(one, str) else _difference(one, other, sizes)
            if why:
                refused[step.name] = step.name, step.operator.label, f"at {stated}: {why}"
    if refused:
        raise NotExportedError(list(refused.values()))


def _difference(one: _Written, other: _Written | str, sizes: Sizes) -> str:
    """Return how a step differs at some sizes, "" if it does not."""
    if isinstance(other, str):
        return other
    if text_at(one[0], sizes) != other[0] or len(one[1]) != len(other[1]):
        return "it runs in another way than at the highest sizes"
    for array, cut in zip(one[1], other[1], strict=True):
        front = array.reshape(-1)[: cut.size]
        if array.dtype != cut.dtype or not np.array_equal(front, cut.reshape(-1), equal_nan=True):
            return "its constants are others than at the highest sizes"
    return ""


def _written(layout: ArenaLayout, file: CFileParts, program: Program) -> list[_Written | str]:
    """Return what is written of each step, or why it is not."""
    found: list[_Written | str] = []
    layout = replace(layout, program=program)
    for number, step in enumerate(program.steps):
        constants = _Recorded("")
        parts = replace(
            file, constants=constants, kernels=set(), features=set(), layers=[], functions=[],
            has_local_layers=True,
        )  # fmt: skip
        writer = StepWriter(layout, step, number, parts)
        try:
            writers()[type(step.operator)](writer)
        except (NotWrittenError, ArithmeticError, LookupError, ValueError) as error:
            found.append(str(error))
            continue
        text = "\n".join([*writer.calls, *parts.functions, *sorted(parts.features)])
        found.append((" ".join(text.split()), constants.found))
    return found
