"""Checks that C source for a range of sizes states what source for one of them alone does."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from arenite.planner import Array, Step
from arenite.planner.operators import Band
from arenite.planner.sizes import Sizes
from arenite.planner.tensors import ROW_AXIS
from arenite.runtime.cexport.bands import whole_step
from arenite.runtime.cexport.base.errors import NotExportedError, NotWrittenError
from arenite.runtime.cexport.base.layout import ArenaLayout, FlashConstants
from arenite.runtime.cexport.base.orders import Orders
from arenite.runtime.cexport.base.ranges import has_trivial_lengths, points, program_at, text_at
from arenite.runtime.cexport.steps.writer import CFileParts, StepWriter, writers


@dataclass(slots=True)
class _Recorded(FlashConstants):
    """Constants in the order in which a step asks for them, each with a name of its own."""

    found: list[Array] = field(default_factory=list)

    def add(self, array: Array, hint: str, orders: Orders | None = None) -> str:
        self.found.append(array)
        return f"{hint}_{len(self.found)}"


_Written: TypeAlias = tuple[str, list[Array]]
"""Everything that is written of a step, and its constants."""


def check_sizes(layout: ArenaLayout, written: CFileParts) -> None:
    """Check every step at several sizes.

    What depends on sizes is a length in the program. A writer that loses an expression, or decides
    by the highest sizes alone, writes other text for the program at another size.

    Args:
        layout: Where tensors lie, and rows that lie apart; sizes are symbols.
        written: The file.

    Raises:
        NotExportedError: Steps differ; all of them are named.
    """
    bands: dict[str, Band] = {}
    layout = _unbanded(layout, bands)
    ranged = _written(layout, written, bands)
    refused: dict[str, tuple[str, str, str]] = {}
    for sizes in points(layout.program.dimensions):
        stated = ", ".join(f"{name}={value}" for name, value in sizes.items())
        program = program_at(layout.program, sizes)
        rows = {
            name: starts[: program.tensors[name].shape[ROW_AXIS]]
            for name, starts in layout.rows.items()
        }
        fixed = _written(replace(layout, program=program, rows=rows), written, bands)
        for step, one, other in zip(layout.program.steps, ranged, fixed, strict=True):
            if step.name in refused or has_trivial_lengths(layout.program, step, sizes):
                continue
            why = one if isinstance(one, str) else _difference(one, other, sizes)
            if why:
                refused[step.name] = step.name, step.operator.label, f"at {stated}: {why}"
    if refused:
        raise NotExportedError(list(refused.values()))


def _unbanded(layout: ArenaLayout, bands: dict[str, Band]) -> ArenaLayout:
    """Return a layout whose steps make all rows of their results.

    Pieces of tensors have the rows of the highest sizes, wholes those of a run.

    Args:
        layout: Where tensors lie.
        bands: Takes a turn of each step that runs by rows.
    """
    program = layout.program
    steps: list[Step] = []
    working: dict[int, int] = {}
    pieces: set[str] = set()
    for number, step in enumerate(program.steps):
        band = step.operator
        if isinstance(band, Band):
            pieces.update(name for name in (*step.inputs, *step.outputs) if name)
            if band.step in bands:
                continue
            bands[band.step] = band
            step = whole_step(step, band)
        working[len(steps)] = layout.working.get(number, 0)
        steps.append(step)
    named = {name for step in steps for name in (*step.reads, *step.writes)}
    named.update((*program.input_tensors, *program.output_tensors))
    for name in tuple(named):
        view = program.tensors.get(name)
        while view is not None and view.alias is not None:
            named.add(view.alias.tensor)
            view = program.tensors.get(view.alias.tensor)
    tensors = {
        name: each
        for name, each in program.tensors.items()
        if name in named or (each.alias is None and name not in pieces)
    }
    return replace(
        layout, program=replace(program, tensors=tensors, steps=tuple(steps)), working=working
    )


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


def _written(
    layout: ArenaLayout, file: CFileParts, bands: Mapping[str, Band]
) -> list[_Written | str]:
    """Return what is written of each step, or why it is not."""
    found: list[_Written | str] = []
    for number, step in enumerate(layout.program.steps):
        constants = _Recorded("")
        parts = replace(
            file, constants=constants, kernels=set(), features=set(), layers=[], functions=[],
            is_compared=True,
        )  # fmt: skip
        writer = StepWriter(layout, step, number, parts)
        band = bands.get(step.name)
        if band is not None:
            counted = writer.input() if band.sums else writer.output()
            writer.num_rows = counted.shape[ROW_AXIS]
            writer.sums = "arena" if band.sums else ""
        try:
            writers()[type(step.operator)](writer)
        except (NotWrittenError, ArithmeticError, LookupError, ValueError) as error:
            found.append(str(error))
            continue
        text = "\n".join([*writer.calls, *parts.functions, *sorted(parts.features)])
        found.append((" ".join(text.split()), constants.found))
    return found
